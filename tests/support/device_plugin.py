"""A device plugin for tests: offers one resource on one node and answers with a CDI device.

It speaks the kubelet's protocol over sockets in the node's own folder, which the test can reach
from outside, so it needs neither an image nor a pod.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import grpc
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PACKAGE = "v1beta1"
_STRING = descriptor_pb2.FieldDescriptorProto.TYPE_STRING
# Message -> (field, number, message type or None for text, repeated).
MESSAGES: dict[str, list[tuple[str, int, str | None, bool]]] = {
    "Empty": [],
    "DevicePluginOptions": [],
    "RegisterRequest": [
        ("version", 1, None, False),
        ("endpoint", 2, None, False),
        ("resource_name", 3, None, False),
    ],
    "Device": [("ID", 1, None, False), ("health", 2, None, False)],
    "ListAndWatchResponse": [("devices", 1, "Device", True)],
    "ContainerAllocateRequest": [("devices_ids", 1, None, True)],
    "AllocateRequest": [("container_requests", 1, "ContainerAllocateRequest", True)],
    "CDIDevice": [("name", 1, None, False)],
    "ContainerAllocateResponse": [("cdi_devices", 5, "CDIDevice", True)],
    "AllocateResponse": [("container_responses", 1, "ContainerAllocateResponse", True)],
}


def _classes() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(name="device.proto", package=PACKAGE, syntax="proto3")
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for field, number, kind, repeated in fields:
            message.field.add(
                name=field,
                number=number,
                label=3 if repeated else 1,
                type=11 if kind else _STRING,
                type_name=f".{PACKAGE}.{kind}" if kind else None,
            )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{PACKAGE}.{name}"))
        for name in MESSAGES
    }


class DevicePlugin:
    """Serves until it is closed."""

    def __init__(self, folder: Path, resource: str, devices: list[str], cdi_kind: str) -> None:
        self._types = _classes()
        self._devices = devices
        self._cdi_kind = cdi_kind
        self._closing = threading.Event()
        self._server = grpc.server(ThreadPoolExecutor(4))
        self._server.add_generic_rpc_handlers([self._handlers()])
        endpoint = resource.replace("/", "_") + ".sock"
        self._server.add_insecure_port(f"unix://{folder / endpoint}")
        self._server.start()
        self._register(folder, endpoint, resource)

    def _handlers(self) -> grpc.GenericRpcHandler:
        types = self._types

        def unary(request: str, answer: Any) -> grpc.RpcMethodHandler:
            return grpc.unary_unary_rpc_method_handler(
                answer, types[request].FromString, lambda value: value.SerializeToString()
            )

        return grpc.method_handlers_generic_handler(
            f"{PACKAGE}.DevicePlugin",
            {
                "GetDevicePluginOptions": unary("Empty", lambda *_: types["DevicePluginOptions"]()),
                "Allocate": unary("AllocateRequest", self._allocate),
                "ListAndWatch": grpc.unary_stream_rpc_method_handler(
                    self._list, types["Empty"].FromString, lambda value: value.SerializeToString()
                ),
            },
        )

    def _list(self, _request: Any, _context: grpc.ServicerContext) -> Iterator[Any]:
        devices = [self._types["Device"](ID=name, health="Healthy") for name in self._devices]
        yield self._types["ListAndWatchResponse"](devices=devices)
        self._closing.wait()

    def _allocate(self, request: Any, _context: grpc.ServicerContext) -> Any:
        types = self._types
        return types["AllocateResponse"](
            container_responses=[
                types["ContainerAllocateResponse"](
                    cdi_devices=[
                        types["CDIDevice"](name=f"{self._cdi_kind}={name}")
                        for name in container.devices_ids
                    ]
                )
                for container in request.container_requests
            ]
        )

    def _register(self, folder: Path, endpoint: str, resource: str) -> None:
        request = self._types["RegisterRequest"](
            version=PACKAGE, endpoint=endpoint, resource_name=resource
        )
        with grpc.insecure_channel(f"unix://{folder / 'kubelet.sock'}") as channel:
            call = channel.unary_unary(
                f"/{PACKAGE}.Registration/Register",
                request_serializer=lambda value: value.SerializeToString(),
                response_deserializer=self._types["Empty"].FromString,
            )
            call(request, timeout=20)

    def close(self) -> None:
        self._closing.set()
        self._server.stop(grace=1).wait()
