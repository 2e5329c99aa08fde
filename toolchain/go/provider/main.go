// Command pulumi-resource-kubernetes is the Kubernetes provider of release v4.25.0.
//
// The provider's own main embeds generated files that its Go module does not hold. This one
// embeds the schema and the mapping that the build takes from the module (see toolchain/pins.py).
package main

import (
	_ "embed"

	"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/provider"
	"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/version"
)

//go:embed generated/schema.json
var schema []byte

//go:embed generated/terraform-mapping.json
var mapping []byte

func main() {
	provider.Serve("kubernetes", version.Version, schema, mapping)
}
