"""Pipelines, fields and calls as Python closures of (run, dot, frame)."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

from hortus.render.gotemplate import nodes
from hortus.render.gotemplate.calls import ANY, METHODS, Function, Parameter, Refused
from hortus.render.gotemplate.errors import FunctionError
from hortus.render.gotemplate.fields import NOT_THERE, FieldError, method_of, read
from hortus.render.gotemplate.located import Evaluate, Located, last_at
from hortus.render.gotemplate.run import Execution
from hortus.render.gotemplate.values import ABSENT, ELEMENTS, ValuesMap, is_true

Continue = Callable[[Execution, Any, list[Any], Any], Any]
"""Evaluate with the value that comes down the pipeline; NO_FINAL for the first command."""
NO_FINAL: Final = object()
Applied = Callable[..., Any]
"""A Continue that may be given what to call: the method bound to its receiver."""


class Expressions(Located):
    """Compiles what stands between the delimiters of one statement."""

    __slots__ = ()

    # Pipelines

    def pipeline(self, pipe: nodes.Pipe, scope: dict[str, int]) -> Evaluate:
        """The value of a pipeline, ABSENT instead of nil; declarations take effect in `scope` and in the frame."""
        first = self.command(pipe.commands[0], scope)
        others = tuple(self._continued(command, scope) for command in pipe.commands[1:])
        targets = [self._target(variable, pipe, scope) for variable in pipe.declared]
        # Nearly all pipelines have one or two commands and declare nothing: these spare the loops below.
        if not others and not targets:

            def single(run: Execution, dot: Any, frame: list[Any]) -> Any:
                value = first(run, dot, frame)
                return ABSENT if value is None else value

            return single
        if len(others) == 1 and not targets:
            second = others[0]

            def double(run: Execution, dot: Any, frame: list[Any]) -> Any:
                value = first(run, dot, frame)
                value = second(run, dot, frame, ABSENT if value is None else value)
                return ABSENT if value is None else value

            return double

        def whole(run: Execution, dot: Any, frame: list[Any]) -> Any:
            value = first(run, dot, frame)
            value = ABSENT if value is None else value
            for other in others:
                value = other(run, dot, frame, value)
                value = ABSENT if value is None else value
            for target, variable in zip(targets, pipe.declared, strict=True):
                if target is None:
                    raise self.failure(run, last_at(pipe), f"undefined variable: {variable.names[0]}")
                frame[target] = value
            return value

        return whole

    def _target(self, variable: nodes.Variable, pipe: nodes.Pipe, scope: dict[str, int]) -> int | None:
        name = variable.names[0]
        if pipe.assigns:
            return scope.get(name)
        scope[name] = self.frame.take()
        # A new variable hides one of a range, whose note on the type of its elements stands under "." and its name.
        scope.pop("." + name, None)
        return scope[name]

    def command(self, command: nodes.Command, scope: dict[str, int]) -> Evaluate:
        """The first command of a pipeline."""
        first = command.arguments[0]
        if isinstance(first, nodes.Identifier):
            return self._function(command, first, command.arguments[1:], scope)
        if isinstance(first, nodes.Field | nodes.Chain | nodes.Variable):
            return self.fields(first, command.arguments[1:], scope)
        if len(command.arguments) > 1:
            where = command if isinstance(first, nodes.Pipe) else first
            return self.failing(where, f"can't give argument to non-function {first}")
        return self._word(first, scope)

    def _word(self, node: nodes.Node, scope: dict[str, int]) -> Evaluate:
        if isinstance(node, nodes.Pipe):
            return self.pipeline(node, scope)
        if isinstance(node, nodes.Dot):
            return _dot
        if isinstance(node, nodes.Nil):
            return self.failing(node, "nil is not a command")
        assert isinstance(node, nodes.Literal)
        return self._constant(node, ANY)

    def _continued(self, command: nodes.Command, scope: dict[str, int]) -> Continue:
        """A command that is given a value by the one before it."""
        first = command.arguments[0]
        if isinstance(first, nodes.Identifier):
            return self._piped_function(command, first, command.arguments[1:], scope)
        if isinstance(first, nodes.Field | nodes.Chain) or (isinstance(first, nodes.Variable) and len(first.names) > 1):
            return self._piped_fields(first, command.arguments[1:], scope)
        fail = self.failing(first, f"can't give argument to non-function {first}")
        return lambda run, dot, frame, _value: fail(run, dot, frame)

    # Fields

    def fields(self, node: nodes.Node, arguments: list[nodes.Node], scope: dict[str, int]) -> Evaluate:
        """A chain of fields; the last may be a method that takes the arguments."""
        base, names = self._base(node, scope)
        if not names:
            if arguments:
                return self.failing(node, f"can't give argument to non-function {node}")
            return base
        if arguments:
            piped = self._chain(node, base, names, arguments, scope)
            return lambda run, dot, frame: piped(run, dot, frame, NO_FINAL)
        return self._plain_chain(node, base, names, scope)

    def _piped_fields(self, node: nodes.Node, arguments: list[nodes.Node], scope: dict[str, int]) -> Continue:
        base, names = self._base(node, scope)
        return self._chain(node, base, names, arguments, scope)

    def _base(self, node: nodes.Node, scope: dict[str, int]) -> tuple[Evaluate, list[str]]:
        if isinstance(node, nodes.Field):
            return _dot, node.names
        if isinstance(node, nodes.Variable):
            return self._variable(node, scope), node.names[1:]
        assert isinstance(node, nodes.Chain)
        if isinstance(node.node, nodes.Nil):
            return self.failing(node, f"indirection through explicit nil in {node}"), node.names
        return self.argument(node.node, ANY, scope, raw=True), node.names

    def _variable(self, node: nodes.Variable, scope: dict[str, int]) -> Evaluate:
        slot = scope.get(node.names[0])
        if slot is None:
            return self.failing(node, f"undefined variable: {node.names[0]}")
        place = slot

        def variable(_run: Execution, _dot: Any, frame: list[Any]) -> Any:
            return frame[place]

        return variable

    def _plain_chain(self, node: nodes.Node, base: Evaluate, names: list[str], scope: dict[str, int]) -> Evaluate:
        last = last_at(node)
        missing = {"default": ABSENT, "zero": None}.get(self.missing, NOT_THERE)
        methods = METHODS.get(ValuesMap, {})
        slow = self._slow_field(node, last, scope)
        if len(names) == 1:
            name = names[0]
            # Values are read without a look for methods, unless they have one of this name.
            other = dict if name in methods else ValuesMap

            def field(run: Execution, dot: Any, frame: list[Any]) -> Any:
                receiver = base(run, dot, frame)
                if type(receiver) is dict or type(receiver) is other:
                    found = receiver.get(name, missing)
                    if found is not NOT_THERE:
                        return found
                return slow(run, dot, frame, receiver, name, None)

            return field
        pairs = [(name, dict if name in methods else ValuesMap) for name in names]

        def chain(run: Execution, dot: Any, frame: list[Any]) -> Any:
            receiver = base(run, dot, frame)
            above = None
            for name, other in pairs:
                # `current` is what this receiver was read from: errors name its type as Go knows it from there.
                above, current = receiver, above
                if type(receiver) is dict or type(receiver) is other:
                    found = receiver.get(name, missing)
                    receiver = found if found is not NOT_THERE else slow(run, dot, frame, receiver, name, current)
                else:
                    receiver = slow(run, dot, frame, receiver, name, current)
            return receiver

        return chain

    def _slow_field(
        self, node: nodes.Node, last: nodes.Node, scope: dict[str, int]
    ) -> Callable[[Execution, Any, list[Any], Any, str, Any], Any]:
        """The value of a field of anything but a plain map; `above` is the node that the receiver was read from."""
        opaque_slot = _opacity(node, scope)
        made = self._methods(node, [], scope)

        def slow(run: Execution, dot: Any, frame: list[Any], receiver: Any, name: str, above: Any) -> Any:
            method = method_of(receiver, name)
            if method is not None:
                return made(method)(run, dot, frame, NO_FINAL, method.call)
            try:
                return read(receiver, name, self.missing, opaque=_is_opaque(above, frame, opaque_slot))
            except FieldError as error:
                raise self.failure(run, last, str(error)) from None

        return slow

    def _chain(
        self, node: nodes.Node, base: Evaluate, names: list[str], arguments: list[nodes.Node], scope: dict[str, int]
    ) -> Continue:
        """The general case: the last name may be a method with arguments and a piped value."""
        last = last_at(node)
        slow = self._slow_field(node, last, scope)
        # Arguments are compiled once the method is known, and must not see variables that are declared until then.
        scope = dict(scope)
        opaque_slot = _opacity(node, scope)
        made = self._methods(node, arguments, scope)

        def chain(run: Execution, dot: Any, frame: list[Any], final: Any) -> Any:
            receiver = base(run, dot, frame)
            above = None
            for name in names[:-1]:
                above, receiver = receiver, slow(run, dot, frame, receiver, name, above)
            method = method_of(receiver, names[-1])
            if method is not None:
                return made(method)(run, dot, frame, final, method.call)
            try:
                opaque = _is_opaque(above, frame, opaque_slot)
                return read(receiver, names[-1], self.missing, has_arguments=True, opaque=opaque)
            except FieldError as error:
                raise self.failure(run, last, str(error)) from None

        return chain

    def _methods(
        self, node: nodes.Node, arguments: list[nodes.Node], scope: dict[str, int]
    ) -> Callable[[Function], Applied]:
        """Calls of methods, which are known only when the receiver is; compiled once for each signature."""
        known: dict[Any, Applied] = {}

        def made(method: Function) -> Applied:
            key = (method.name, method.fixed, method.variadic)
            found = known.get(key)
            if found is None:
                known[key] = found = self._call(method, node, last_at(node), arguments, scope)
            return found

        return made

    # Calls

    def _function(
        self, command: nodes.Node, identifier: nodes.Identifier, arguments: list[nodes.Node], scope: dict[str, int]
    ) -> Evaluate:
        function = self._named(identifier, arguments)
        if function.special in ("and", "or"):
            decide = self._logic(function, identifier, arguments, scope)
            return lambda run, dot, frame: decide(run, dot, frame, NO_FINAL)
        problem = function.count_problem(len(arguments), len(arguments))
        if problem:
            return self.failing(identifier, problem)
        evaluate = [self.argument(part, function.parameter(i), scope) for i, part in enumerate(arguments)]
        return self._guarded(_applied(function, evaluate), function, command)

    def _named(self, identifier: nodes.Identifier, arguments: list[nodes.Node]) -> Function:
        function = self.functions[identifier.name]
        if function.special == "call" and arguments:
            return Function("call", "value, ...value", functools.partial(function.call, str(arguments[0])))
        return function

    def _piped_function(
        self, command: nodes.Node, identifier: nodes.Identifier, arguments: list[nodes.Node], scope: dict[str, int]
    ) -> Continue:
        function = self.functions[identifier.name]
        if function.special in ("and", "or"):
            return self._logic(function, identifier, arguments, scope)
        return self._call(function, command, identifier, arguments, scope)

    def _call(
        self,
        function: Function,
        command: nodes.Node,
        identifier: nodes.Node,
        arguments: list[nodes.Node],
        scope: dict[str, int],
    ) -> Applied:
        """A call whose last argument may come down the pipeline; with a last argument it calls that instead."""
        count = len(arguments)
        variadic = function.variadic is not None
        room = count if variadic else min(count, len(function.fixed))
        evaluate = [self.argument(part, function.parameter(i), scope) for i, part in enumerate(arguments[:room])]
        piped = function.count_problem(count + 1, count)
        unpiped = function.count_problem(count, count)
        parameter = function.parameter(count) if piped is None else ANY
        at = last_at(arguments[-1]) if arguments else identifier
        passes = function.special == "run"

        def apply(
            run: Execution, dot: Any, frame: list[Any], final: Any, call: Callable[..., Any] = function.call
        ) -> Any:
            problem = unpiped if final is NO_FINAL else piped
            if problem:
                raise self.failure(run, identifier, problem)
            values = [part(run, dot, frame) for part in evaluate]
            if final is not NO_FINAL:
                try:
                    values.append(parameter.convert(final))
                except Refused as error:
                    raise self.failure(run, at, str(error)) from None
            try:
                value = call(run, *values) if passes else call(*values)
            except FunctionError as error:
                raise self.failure(run, command, f"error calling {function.name}: {error}") from None
            if type(value) is str or type(value) is list:
                run.spent.weigh(value)
            return value

        return apply

    def _guarded(self, apply: Evaluate, function: Function, command: nodes.Node) -> Evaluate:
        def guarded(run: Execution, dot: Any, frame: list[Any]) -> Any:
            try:
                value = apply(run, dot, frame)
            except FunctionError as error:
                raise self.failure(run, command, f"error calling {function.name}: {error}") from None
            if type(value) is str or type(value) is list:
                run.spent.weigh(value)
            return value

        return guarded

    def _logic(
        self, function: Function, identifier: nodes.Node, arguments: list[nodes.Node], scope: dict[str, int]
    ) -> Continue:
        parts = [self.argument(part, ANY, scope, raw=True) for part in arguments]
        stops = function.name == "or"
        count = len(arguments)

        def decide(run: Execution, dot: Any, frame: list[Any], final: Any) -> Any:
            value: Any = ABSENT
            if not parts and final is NO_FINAL:
                problem = f"wrong number of args for {function.name}: want at least 1 got {count}"
                raise self.failure(run, identifier, problem)
            for part in parts:
                value = part(run, dot, frame)
                if is_true(value) is stops:
                    return value
            return value if final is NO_FINAL else final

        return decide

    def argument(self, node: nodes.Node, parameter: Parameter, scope: dict[str, int], *, raw: bool = False) -> Evaluate:
        """An operand as an argument of this type. `raw` keeps ABSENT apart from nil."""
        if isinstance(node, nodes.Literal):
            return self._constant(node, parameter)
        if isinstance(node, nodes.Nil):
            return self._nil(node, parameter)
        evaluate = self._operand(node, scope)
        if raw or (parameter.plain is None and parameter.nil is not None):
            return evaluate
        return self._converted(evaluate, parameter, last_at(node))

    def _operand(self, node: nodes.Node, scope: dict[str, int]) -> Evaluate:
        if isinstance(node, nodes.Dot):
            return _dot
        if isinstance(node, nodes.Pipe):
            return self.pipeline(node, scope)
        if isinstance(node, nodes.Identifier):
            return self._function(node, node, [], scope)
        return self.fields(node, [], scope)

    def _converted(self, evaluate: Evaluate, parameter: Parameter, at: nodes.Node) -> Evaluate:
        plain = parameter.plain
        if plain is None:

            def any_value(run: Execution, dot: Any, frame: list[Any]) -> Any:
                value = evaluate(run, dot, frame)
                return None if value is ABSENT else value

            return any_value

        def typed(run: Execution, dot: Any, frame: list[Any]) -> Any:
            value = evaluate(run, dot, frame)
            if type(value) is plain:
                return value
            try:
                return parameter.convert(value)
            except Refused as error:
                raise self.failure(run, at, str(error)) from None

        return typed

    def _constant(self, node: nodes.Literal, parameter: Parameter) -> Evaluate:
        try:
            value = parameter.literal(node)
        except Refused as error:
            return self.failing(node, str(error))
        return lambda _run, _dot, _frame: value

    def _nil(self, node: nodes.Nil, parameter: Parameter) -> Evaluate:
        try:
            value = parameter.null()
        except Refused as error:
            return self.failing(node, str(error))
        return lambda _run, _dot, _frame: value


def _dot(_run: Execution, dot: Any, _frame: list[Any]) -> Any:
    return dot


def _opacity(node: nodes.Node, scope: dict[str, int]) -> int | None:
    """The slot of the frame that says if Go knows a range's element only as interface {}; None for everything else."""
    if isinstance(node, nodes.Field):
        return scope.get(".")
    return scope.get("." + node.names[0]) if isinstance(node, nodes.Variable) else None


def _is_opaque(above: Any, frame: list[Any], opaque_slot: int | None) -> bool:
    """True when Go knows a value only as interface {}: a value read from a map, and an element of a range."""
    if above is None:
        return opaque_slot is not None and bool(frame[opaque_slot])
    return isinstance(above, dict) and type(above) not in ELEMENTS


def _applied(function: Function, arguments: list[Evaluate]) -> Evaluate:
    """A call with all arguments written; the common numbers of arguments without a list in between."""
    call = function.call
    if function.special == "run":
        return lambda run, dot, frame: call(run, *[part(run, dot, frame) for part in arguments])
    if len(arguments) == 1:
        only = arguments[0]
        return lambda run, dot, frame: call(only(run, dot, frame))
    if len(arguments) == 2:
        first, second = arguments
        return lambda run, dot, frame: call(first(run, dot, frame), second(run, dot, frame))
    return lambda run, dot, frame: call(*[part(run, dot, frame) for part in arguments])
