"""etcd's client side: the wire that the API server's store and the migration of control planes share."""

from hortus.etcd.wire import EtcdFailed, EtcdLogin, EtcdWire, Message, OutOfRange, RequestTooLarge, number, text

__all__ = [
    "EtcdFailed",
    "EtcdLogin",
    "EtcdWire",
    "Message",
    "OutOfRange",
    "RequestTooLarge",
    "number",
    "text",
]
