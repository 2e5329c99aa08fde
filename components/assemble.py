"""Walks the plan in order, makes a component per operand and joins the edges."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pulumi import ResourceOptions
from pulumi_kubernetes import Provider

from components.driver_pools import DriverPools
from components.foundation import Foundation

if TYPE_CHECKING:
    from rbln_stack.kube import Access
    from rbln_stack.plan import StackPlan


def assemble(plan: StackPlan, access: Access) -> None:
    """Declare every operand of the plan on the cluster discovery has read."""
    inherited = ResourceOptions(provider=cluster_provider(access))
    foundation = Foundation(plan, opts=inherited)
    if plan.driver is not None:
        DriverPools(plan.driver, after=[foundation.home], opts=inherited)


def cluster_provider(access: Access) -> Provider:
    """The provider of all objects: a path at most goes into the state, never a file's content.

    An empty text, unlike None, keeps the SDK from recording this machine's KUBECONFIG; the
    provider then looks for credentials exactly where discovery did.
    """
    return Provider("cluster", kubeconfig=access.kubeconfig or "", context=access.context)
