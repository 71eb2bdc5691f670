"""The entry from Python into machine code: builtin functions that read arrays themselves, for one state and for many.

Both take the inputs and outputs of a program, in its order, as arrays of the right type, dimensions and sizes. They
return FINITE if all inputs and outputs are known to be finite, and DONE otherwise; or they do nothing and return
REFUSED if an argument is something else. `self` is an int64 array with the addresses of the tables, the arena, the type
ndarray and the dtype.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

import numpy as np

from coupler.graph.llvm.blocks import PREFETCH, Blocks, function
from coupler.graph.llvm.copying import LARGE, copy_array, copy_unless_in_lanes, written_to
from coupler.graph.llvm.finite import not_finite, note_not_finite
from coupler.graph.llvm.render import Renderer
from coupler.graph.parameters import PARAMETERS
from coupler.graph.program import Program, Repeat
from coupler.graph.window import Buffer

REFUSED, FINITE, DONE = 0, 1, 2

# The layout of NumPy's array object, in bytes from its start; `array_layout_is_known` checks it.
_HEADER = object.__basicsize__
_TYPE, _DATA, _DIMENSIONS, _SHAPE, _STRIDES, _DTYPE = (_HEADER + at for at in (-8, 0, 8, 16, 24, 40))

_LONG = 50_000  # operations, from which on the interpreter lock is released
_STACK = 64 * 1024  # bytes of memory that a program may take on the stack
_PIECE = 20_000  # operations that a thread should run before it takes more states: some microseconds


def array_layout_is_known() -> bool:
    """Whether this interpreter and this NumPy have the array layout that the builtins read."""
    if ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    sample = np.empty((3, 5))[:, 1:4:2]

    def read(kind: type, address: int) -> int:
        return kind.from_address(address).value  # type: ignore[attr-defined]

    pointer, number = ctypes.c_size_t, ctypes.c_ssize_t
    address = id(sample)
    return (
        read(pointer, address + _TYPE) == id(np.ndarray)
        and read(pointer, address + _DATA) == sample.ctypes.data
        and read(ctypes.c_int, address + _DIMENSIONS) == sample.ndim
        and read(pointer, address + _DTYPE) == id(sample.dtype)
        and tuple(read(number, read(pointer, address + _SHAPE) + 8 * i) for i in (0, 1)) == sample.shape
        and tuple(read(number, read(pointer, address + _STRIDES) + 8 * i) for i in (0, 1)) == sample.strides
    )


def one_state_entry(renderer: Renderer) -> str:
    """PyObject *one(PyObject *self, PyObject **args, Py_ssize_t n): a METH_FASTCALL builtin for contiguous vectors.

    A program that `fits_on_stack` needs no arena, and may run in several threads at once.

    The interpreter lock is released while a long program runs. For a short one that would do harm: another Python
    thread would take the lock and keep it for milliseconds.
    """
    program = renderer.program
    code = Blocks()
    places = _read_arguments(renderer, code, dimensions=1)
    if fits_on_stack(renderer):
        code.emit(f"%stack = alloca [{program.scratch_size} x {renderer.scalar}], align 64")
    if release := _is_long(program):
        code.emit("%thread = call ptr @PyEval_SaveThread()")
    code.emit(_call_program(renderer, places, "%stack" if fits_on_stack(renderer) else "%arena"))
    wrong = not_finite(renderer, places, code)
    if release:
        code.emit("call void @PyEval_RestoreThread(ptr %thread)")
    code.emit(f"%answer = select i1 {wrong}, i64 {DONE}, i64 {FINITE}")
    return _builtin("one", code)


def batch_entry(renderer: Renderer) -> str:
    """PyObject *batch(PyObject *self, PyObject **args, Py_ssize_t n): a METH_FASTCALL builtin for arrays of states.

    One more argument, an int64 array, has the number of the next state. Several threads that are given the same arrays
    share the states of a batch: each takes the next few until none are left. The interpreter lock is released.
    """
    code = Blocks()
    arguments = len(renderer.program.inputs) + len(renderer.program.outputs)
    _read_arguments(renderer, code, dimensions=2)
    code.emit(f"%arrays = alloca [{3 * arguments} x i64]")
    for i in range(arguments):
        for j, (value, kind) in enumerate(((f"%data{i}", "ptr"), (f"%away{i}", "i64"), (f"%stride{i}", "i64"))):
            code.emit(f"%arrays{i}.{j} = getelementptr i64, ptr %arrays, i64 {3 * i + j}")
            code.emit(f"store {kind} {value}, ptr %arrays{i}.{j}")
    code.emit(f"%next.a = getelementptr ptr, ptr %args, i64 {arguments}")
    code.emit("%next.array = load ptr, ptr %next.a")
    code.emit(f"%next.p = getelementptr i8, ptr %next.array, i64 {_DATA}")
    code.emit("%next = load ptr, ptr %next.p")
    code.emit("%thread = call ptr @PyEval_SaveThread()")
    code.emit("%answer = call i64 @states(ptr %context, ptr %arrays, i64 %count0, ptr %next)")
    code.emit("call void @PyEval_RestoreThread(ptr %thread)")
    functions = f"{_states(renderer)}{_builtin('batch', code, _REALIGNED)}"
    return f"declare {PREFETCH}\n{functions}{_aligned_stack(renderer)}"


_REALIGNED = '"stackrealign"'  # for functions that others call, whose stack is aligned to 16 bytes only
_ALIGNED_BY_OTHERS = 16  # bytes, on all our platforms


def _aligned_stack(renderer: Renderer) -> str:
    """Aligns the stacks of all functions of the module to a register.

    Else spilled registers would lie across cache lines, and some across pages: which ones, and so the time of a batch,
    would depend on how deep in calls the caller is.
    """
    if renderer.align <= _ALIGNED_BY_OTHERS:
        return ""
    return f'!llvm.module.flags = !{{!0}}\n!0 = !{{i32 1, !"override-stack-alignment", i32 {renderer.align}}}\n'


def fits_on_stack(renderer: Renderer) -> bool:
    """Whether a single state needs so little scratch that it fits on the stack."""
    return renderer.program.scratch_size * renderer.dtype.itemsize <= _STACK


def piece(program: Program, lanes: int) -> int:
    """How many states of a batch a thread takes at a time: whole registers, and enough work to amortise the atomic."""
    return lanes * max(_PIECE // max(program.operations().total(), 1), 1)


def _builtin(name: str, code: Blocks, attributes: str = "") -> str:
    """A builtin that returns %answer."""
    code.emit("%done = call ptr @PyLong_FromLong(i64 %answer)")
    code.emit("ret ptr %done")
    code.block("refuse")
    code.emit(f"%refused = call ptr @PyLong_FromLong(i64 {REFUSED})")
    code.emit("ret ptr %refused")
    declared = ["ptr @PyEval_SaveThread()", "void @PyEval_RestoreThread(ptr)", "ptr @PyLong_FromLong(i64)"]
    lines = [f"declare {signature}" for signature in declared]
    return "\n".join([*lines, function(f"ptr @{name}(ptr %self, ptr %args, i64 %n)", code.lines(), attributes)])


def _read_arguments(renderer: Renderer, code: Blocks, dimensions: int) -> dict[Buffer, str]:
    """Reads the context and the arguments, or jumps to %refuse; returns where the data of each argument is."""
    arguments = [*renderer.program.inputs, *renderer.program.outputs]
    code.emit(f"%context.p = getelementptr i8, ptr %self, i64 {_DATA}")
    code.emit("%context = load ptr, ptr %context.p")
    _read_context(("tables", "arena", "type", "dtype"), code.emit)
    code.emit(f"%counted = icmp eq i64 %n, {len(arguments) + dimensions - 1}")
    code.emit("br i1 %counted, label %check0, label %refuse")
    for i, buffer in enumerate(arguments):
        _check_argument(code, i, buffer, renderer.dtype.itemsize, dimensions)
    code.block(f"check{len(arguments)}")
    return {buffer: f"%data{i}" for i, buffer in enumerate(arguments)}


def _is_long(program: Program) -> bool:
    """Whether a run takes longer than some tens of microseconds, or any time because it has repeats."""
    return any(isinstance(step, Repeat) for step in program.steps) or program.operations().total() > _LONG


def _check_argument(code: Blocks, i: int, buffer: Buffer, itemsize: int, dimensions: int) -> None:
    """Continues with the next argument if this one is valid, and else jumps to %refuse."""
    emit = code.emit
    code.block(f"check{i}")
    emit(f"%arg{i}.p = getelementptr ptr, ptr %args, i64 {i}")
    emit(f"%arg{i} = load ptr, ptr %arg{i}.p")

    def field(name: str, kind: str, of: str, at: int) -> str:
        emit(f"%{name}{i}.p = getelementptr i8, ptr {of}, i64 {at}")
        emit(f"%{name}{i} = load {kind}, ptr %{name}{i}.p")
        return f"%{name}{i}"

    def go_on_if(name: str, condition: str, target: str = "") -> None:
        emit(f"%is.{name}{i} = icmp eq {condition}")
        emit(f"br i1 %is.{name}{i}, label %{target or f'{name}{i}'}, label %refuse")
        if not target:
            code.block(f"{name}{i}")

    # The type is checked first, as nothing else may be read from an object that is not an array.
    array, last = f"%arg{i}", 8 * (dimensions - 1)
    go_on_if("array", f"ptr {field('type', 'ptr', array, _TYPE)}, %type")
    go_on_if("number", f"ptr {field('dtype', 'ptr', array, _DTYPE)}, %dtype")
    go_on_if("vector", f"i32 {field('ndim', 'i32', array, _DIMENSIONS)}, {dimensions}")
    shape, strides = field("shape", "ptr", array, _SHAPE), field("strides", "ptr", array, _STRIDES)
    field("data", "ptr", array, _DATA)
    stride = field("stride", "i64", strides, last)
    go_on_if("sized", f"i64 {field('size', 'i64', shape, last)}, {buffer.size}")
    if dimensions == 2:  # any strides, and as many states as the first has
        field("away", "i64", strides, 0)
        go_on_if("states", f"i64 {field('count', 'i64', shape, 0)}, %count0", f"check{i + 1}")
    elif buffer.size > 1:
        go_on_if("dense", f"i64 {stride}, {itemsize}", f"check{i + 1}")
    else:  # there is no next element: the stride means nothing
        emit(f"br label %check{i + 1}")


def _states(renderer: Renderer) -> str:
    """i64 states(context, arrays, count, next): takes a few states at a time until none are left.

    `arrays` has the address, the stride between states and the stride between elements of each input and output, in
    bytes. A register runs as many states as it has lanes; the last one is filled up with copies of the last state.
    """
    program = renderer.program
    code = Blocks()
    emit = code.emit
    _read_context(("tables", "arena"), emit)
    places = _lay_out(renderer, [*program.inputs, *program.outputs], "%arena", emit)
    wrong = code.allocate("i1")
    emit(f"store i1 false, ptr {wrong}")
    emit("%end = sub i64 %count, 1")
    emit("br label %more")
    code.block("more")
    size = piece(program, renderer.lanes)
    emit(f"%first = atomicrmw add ptr %next, i64 {size} monotonic")
    emit("%left = icmp slt i64 %first, %count")
    emit("br i1 %left, label %take, label %done")
    code.block("take")
    emit(f"%full = add i64 %first, {size}")
    emit("%inside = icmp slt i64 %full, %count")
    emit("%last = select i1 %inside, i64 %full, i64 %count")
    with code.count("%first", "%last", step=renderer.lanes) as block:
        for lane in range(renderer.lanes):
            emit(f"%lane{lane} = add i64 {block}, {lane}")
            emit(f"%inside{lane} = icmp slt i64 %lane{lane}, %count")
            emit(f"%state{lane} = select i1 %inside{lane}, i64 %lane{lane}, i64 %end")
        for i, buffer in enumerate(program.inputs):
            if renderer.lanes > 1 and (buffer.name == PARAMETERS or buffer.size >= LARGE):
                places[buffer] = copy_unless_in_lanes(renderer, code, i, buffer.size, places[buffer], block)
            else:
                copy_array(renderer, code, i, buffer.size, places[buffer], inwards=True)
        ready: dict[Buffer, str] = {}
        for i, buffer in enumerate(program.outputs, len(program.inputs)):
            if renderer.lanes > 1 and buffer.size >= LARGE:
                places[buffer], ready[buffer] = written_to(code, i, places[buffer], block)
        emit(_call_program(renderer, places, "%arena"))
        note_not_finite(renderer, places, code, wrong, list(ready.values()))
        for i, buffer in enumerate(program.outputs, len(program.inputs)):
            copy, copied = code.new_label("copy"), code.new_label("copied")
            if buffer in ready:
                emit(f"br i1 {ready[buffer]}, label %{copied}, label %{copy}")
                code.block(copy)
            copy_array(renderer, code, i, buffer.size, places[buffer], inwards=False)
            if buffer in ready:
                emit(f"br label %{copied}")
                code.block(copied)
    emit("br label %more")
    code.block("done")
    emit(f"%wrong = load i1, ptr {wrong}")
    emit(f"%answer = select i1 %wrong, i64 {DONE}, i64 {FINITE}")
    signature = "i64 @states(ptr %context, ptr %arrays, i64 %count, ptr %next)"
    return function(signature, [*code.lines(), "ret i64 %answer"], _REALIGNED)


def _read_context(names: Sequence[str], emit: Callable[[str], None]) -> None:
    """Loads the addresses that the context holds, in order."""
    for i, name in enumerate(names):
        emit(f"%{name}.p = getelementptr ptr, ptr %context, i64 {i}")
        emit(f"%{name} = load ptr, ptr %{name}.p")


def _lay_out(
    renderer: Renderer, buffers: Sequence[Buffer], memory: str, emit: Callable[[str], None]
) -> dict[Buffer, str]:
    """Lays out buffers in memory one after another, after the program's scratch; returns where they start."""
    offset, places = renderer.program.scratch_size, {}
    for i, buffer in enumerate(buffers):
        places[buffer] = f"%buffer{i}"
        emit(f"{places[buffer]} = getelementptr {renderer.vector}, ptr {memory}, i64 {offset}")
        offset += buffer.size
    return places


def _call_program(renderer: Renderer, places: dict[Buffer, str], scratch: str) -> str:
    program = renderer.program
    arguments = [f"ptr {places[buffer]}" for buffer in (*program.inputs, *program.outputs)]
    return f"call fastcc void @program({', '.join([*arguments, f'ptr {scratch}', 'ptr %tables'])})"
