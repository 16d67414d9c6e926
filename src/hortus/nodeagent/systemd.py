"""systemd over D-Bus: the interface org.freedesktop.systemd1.Manager, as org.freedesktop.systemd1(5) describes it.

One connection, made when first needed and again after it broke. A job is followed by its JobRemoved signal, so nothing
is polled while a unit starts.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping
from typing import Any

from dbus_fast import BusType, Message, MessageType, Variant
from dbus_fast.aio import MessageBus

from hortus.nodeagent.seams import NodeFault, UnitStatus

_SERVICE = "org.freedesktop.systemd1"
_PATH = "/org/freedesktop/systemd1"
_MANAGER = "org.freedesktop.systemd1.Manager"
_UNIT = "org.freedesktop.systemd1.Unit"
_UNIT_SERVICE = "org.freedesktop.systemd1.Service"
_PROPERTIES = "org.freedesktop.DBus.Properties"
_SIGNALS = f"type='signal',sender='{_SERVICE}',interface='{_MANAGER}',member='JobRemoved'"
_MODE = "replace"
_PATIENCE = 30.0
"""Seconds for one call; a reload of thousands of units takes a few."""
JOB_PATIENCE = 10.0
"""Seconds for a job; Gardener's agent goes on after as many."""
_MOST_RESULTS = 256
_MICROSECONDS = 1e6


class Systemd:
    """Implements `UnitControl`. `close` ends the connection."""

    def __init__(self, address: str = "", *, patience: float = JOB_PATIENCE) -> None:
        """`address` is that of a bus; empty for the system's."""
        self.address = address
        self._patience = patience
        self._bus: MessageBus | None = None
        self._connecting = asyncio.Lock()
        self._results: dict[str, str] = {}
        """Results of jobs that ended, by the path of the job."""
        self._waiting: dict[str, asyncio.Future[str]] = {}

    async def close(self) -> None:
        if self._bus is not None:
            self._bus.disconnect()
            self._bus = None

    async def status(self, names: Collection[str], *, details: bool = True) -> Mapping[str, UnitStatus]:
        if not names:
            return {}
        [rows] = await self._manager("ListUnitsByNames", "as", [sorted(names)])
        found = dict.fromkeys(names, UnitStatus())
        for name, _, load, active, sub, _, path, *_ in rows:
            status = UnitStatus(load=load, active=active, sub=sub)
            found[name] = await self._detailed(path, status, name) if details else status
        return found

    async def _detailed(self, path: str, status: UnitStatus, name: str) -> UnitStatus:
        unit = await self._properties(path, _UNIT)
        service = await self._properties(path, _UNIT_SERVICE) if name.endswith(".service") else {}
        return UnitStatus(
            load=status.load,
            active=unit.get("ActiveState", status.active),
            sub=unit.get("SubState", status.sub),
            invocation=_hex(unit.get("InvocationID", b"")),
            enabled=unit.get("UnitFileState", ""),
            kind=service.get("Type", ""),
            started=unit.get("InactiveExitTimestamp", 0) / _MICROSECONDS,
            changed=unit.get("StateChangeTimestamp", 0) / _MICROSECONDS,
            triggers=tuple(unit.get("TriggeredBy", ())),
        )

    async def _properties(self, path: str, interface: str) -> dict[str, Any]:
        [found] = await self._call(path, _PROPERTIES, "GetAll", "s", [interface])
        return {key: value.value if isinstance(value, Variant) else value for key, value in found.items()}

    async def reload(self) -> None:
        await self._manager("Reload")

    async def enable(self, name: str) -> None:
        await self._manager("EnableUnitFiles", "asbb", [[name], False, True])

    async def disable(self, name: str) -> None:
        await self._manager("DisableUnitFiles", "asb", [[name], False])

    async def restart(self, name: str) -> str:
        return await self._job("RestartUnit", name)

    async def stop(self, name: str) -> str:
        return await self._job("StopUnit", name)

    async def _job(self, member: str, name: str) -> str:
        [job] = await self._manager(member, "ss", [name, _MODE])
        return await self._result(str(job))

    async def _result(self, job: str) -> str:
        if job in self._results:
            return self._results.pop(job)
        ended: asyncio.Future[str]
        ended = self._waiting[job] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(self._patience):
                return await ended
        except TimeoutError:
            return "timeout"
        finally:
            self._waiting.pop(job, None)

    async def _manager(self, member: str, signature: str = "", body: list[Any] | None = None) -> list[Any]:
        return await self._call(_PATH, _MANAGER, member, signature, body or [])

    async def _call(self, path: str, interface: str, member: str, signature: str, body: list[Any]) -> list[Any]:
        bus = await self._connected()
        message = Message(
            destination=_SERVICE, path=path, interface=interface, member=member, signature=signature, body=body
        )
        return await self._answer(bus, message)

    async def _answer(self, bus: MessageBus, message: Message) -> list[Any]:
        try:
            async with asyncio.timeout(_PATIENCE):
                answer = await bus.call(message)
        except (TimeoutError, OSError, EOFError) as error:
            await self.close()
            problem = str(error) or "no answer"
            raise NodeFault(
                f"systemd did not answer {message.member} over D-Bus: {problem}; see that both run"
            ) from None
        if answer.message_type is MessageType.ERROR:
            said = str(answer.body[0]) if answer.body else answer.error_name
            raise NodeFault(f"systemd refused {message.member} {_subject(message)}: {said}")
        return list(answer.body)

    async def _connected(self) -> MessageBus:
        async with self._connecting:
            if self._bus is not None and self._bus.connected:
                return self._bus
            bus = MessageBus(self.address or None, bus_type=BusType.SYSTEM)
            try:
                async with asyncio.timeout(_PATIENCE):
                    await bus.connect()
            except (OSError, TimeoutError, EOFError) as error:
                raise NodeFault(f"cannot connect to the D-Bus of the system: {error}; start dbus.socket") from None
            self._results.clear()
            bus.add_message_handler(self._received)
            await self._answer(bus, _match())
            await self._answer(bus, Message(destination=_SERVICE, path=_PATH, interface=_MANAGER, member="Subscribe"))
            self._bus = bus
            return bus

    def _received(self, message: Message) -> None:
        if message.message_type is not MessageType.SIGNAL or message.member != "JobRemoved":
            return
        _, job, _, result = message.body
        waiting = self._waiting.get(job)
        if waiting is not None and not waiting.done():
            waiting.set_result(result)
        elif waiting is None:
            # The job may end before its caller sees the answer that names it.
            self._results[job] = result
            while len(self._results) > _MOST_RESULTS:
                del self._results[next(iter(self._results))]


def _match() -> Message:
    return Message(
        destination="org.freedesktop.DBus",
        path="/org/freedesktop/DBus",
        interface="org.freedesktop.DBus",
        member="AddMatch",
        signature="s",
        body=[_SIGNALS],
    )


def _subject(message: Message) -> str:
    first = message.body[0] if message.body else ""
    return " ".join(first) if isinstance(first, list) else str(first)


def _hex(value: Any) -> str:
    text = bytes(value).hex()
    return text if text.strip("0") else ""
