"""How machine code is entered from Python: a builtin function for one state, a plain C function for a batch."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence

import numpy as np

from coupler.graph.llvm.control import Blocks, function
from coupler.graph.llvm.render import Renderer
from coupler.graph.program import Program, Repeat
from coupler.graph.window import Buffer

__all__ = ["FINITE", "array_layout_is_known", "batch_entry", "fits_on_stack", "one_state_entry"]

REFUSED, FINITE, DONE = 0, 1, 2  # what the call for one state returns

# Where NumPy keeps what within an array object, in bytes from the object's start; `array_layout_is_known` makes sure.
_HEADER = object.__basicsize__
_TYPE, _DATA, _DIMENSIONS, _SHAPE, _STRIDES, _DTYPE = (_HEADER + at for at in (-8, 0, 8, 16, 24, 40))

_LONG = 50_000  # operations
_STACK = 64 * 1024  # bytes of memory that a program may take on the stack
_CHECKED = 256  # so many outputs are seen to be finite before Python sees them


def array_layout_is_known() -> bool:
    """Whether this interpreter and this NumPy lay out arrays as `one_state_entry` reads them."""
    if ctypes.sizeof(ctypes.c_void_p) != 8:
        return False
    sample = np.empty((3, 5))[:, 1:4:2]

    def read(kind: type, address: int) -> int:
        return kind.from_address(address).value  # type: ignore[attr-defined]

    pointer, number = ctypes.c_size_t, ctypes.c_ssize_t
    here = id(sample)
    return (
        read(pointer, here + _TYPE) == id(np.ndarray)
        and read(pointer, here + _DATA) == sample.ctypes.data
        and read(ctypes.c_int, here + _DIMENSIONS) == sample.ndim
        and read(pointer, here + _DTYPE) == id(sample.dtype)
        and tuple(read(number, read(pointer, here + _SHAPE) + 8 * i) for i in (0, 1)) == sample.shape
        and tuple(read(number, read(pointer, here + _STRIDES) + 8 * i) for i in (0, 1)) == sample.strides
    )


def one_state_entry(renderer: Renderer) -> str:
    """PyObject *one(PyObject *self, PyObject **args, Py_ssize_t n): a METH_FASTCALL builtin.

    Takes the inputs and outputs, in the program's order, as arrays. Returns FINITE or DONE once it has run, FINITE if
    all outputs are known to be finite; REFUSED, having done nothing, if an argument is not a contiguous vector of the
    right type and size. `self` is an int64 array that holds the addresses of the tables, the arena, the type ndarray
    and the dtype. A program that `fits_on_stack` needs no arena, and may run in several threads at once.

    The interpreter lock is released meanwhile if the program is long. For a short one that would be worse than useless:
    any other thread that runs Python takes the lock and keeps it for milliseconds.
    """
    program = renderer.program
    arguments = [*program.inputs, *program.outputs]
    lines = ["entry:", f"%context.p = getelementptr i8, ptr %self, i64 {_DATA}", "%context = load ptr, ptr %context.p"]
    stack = fits_on_stack(renderer)
    _read_context(("tables", "given" if stack else "arena", "type", "dtype"), lines.append)
    if stack:
        size = sum(buffer.size for buffer in program.scratch)
        lines.append(f"%arena = alloca [{size} x {renderer.scalar}], align 64")
    lines.append(f"%counted = icmp eq i64 %n, {len(arguments)}")
    lines.append("br i1 %counted, label %check0, label %refuse")
    for i, buffer in enumerate(arguments):
        lines += _check_argument(i, buffer, renderer.dtype.itemsize)
    lines.append(f"check{len(arguments)}:")
    if release := _is_long(program):
        lines.append("%thread = call ptr @PyEval_SaveThread()")
    places = {buffer: f"%data{i}" for i, buffer in enumerate(arguments)}
    places |= _lay_out(renderer, program.scratch, lines.append)
    lines.append(_call_program(renderer, places))
    if release:
        lines.append("call void @PyEval_RestoreThread(ptr %thread)")
    declared = {
        "declare ptr @PyEval_SaveThread()": None,
        "declare void @PyEval_RestoreThread(ptr)": None,
        "declare ptr @PyLong_FromLong(i64)": None,
    }
    answer = _finite(renderer, places, lines.append, declared)
    lines += [
        f"%done = call ptr @PyLong_FromLong(i64 {answer})",
        "ret ptr %done",
        "refuse:",
        f"%refused = call ptr @PyLong_FromLong(i64 {REFUSED})",
        "ret ptr %refused",
    ]
    return "\n".join([*declared, function("ptr @one(ptr %self, ptr %args, i64 %n)", lines)])


def fits_on_stack(renderer: Renderer) -> bool:
    """Whether a single state needs so little memory that it may lie on the stack."""
    return sum(b.size for b in renderer.program.scratch) * renderer.dtype.itemsize <= _STACK


def _finite(
    renderer: Renderer, places: dict[Buffer, str], emit: Callable[[str], None], declared: dict[str, None]
) -> str:
    """FINITE if all outputs are, else DONE; DONE, too, where there are so many that the code would get long."""
    outputs, scalar = renderer.program.outputs, renderer.scalar
    if sum(buffer.size for buffer in outputs) > _CHECKED:
        return str(DONE)
    wrong = "false"
    for i, buffer in enumerate(outputs):
        for at in range(0, buffer.size, 8):
            x, width = f"%check{i}.{at}", min(8, buffer.size - at)
            v, zeros = f"<{width} x {scalar}>", f"<{', '.join([f'{scalar} 0.0'] * width)}>"
            declared[f"declare i1 @llvm.vector.reduce.or.v{width}i1(<{width} x i1>)"] = None
            emit(f"{x}.p = getelementptr {scalar}, ptr {places[buffer]}, i64 {at}")
            emit(f"{x} = load {v}, ptr {x}.p, align 1")
            emit(f"{x}.zero = fmul {v} {x}, {zeros}")  # which infinities and NaN are not
            emit(f"{x}.nan = fcmp uno {v} {x}.zero, {zeros}")
            emit(f"{x}.any = call i1 @llvm.vector.reduce.or.v{width}i1(<{width} x i1> {x}.nan)")
            emit(f"{x}.wrong = or i1 {wrong}, {x}.any")
            wrong = f"{x}.wrong"
    emit(f"%answer = select i1 {wrong}, i64 {DONE}, i64 {FINITE}")
    return "%answer"


def _is_long(program: Program) -> bool:
    """Whether a run takes longer than some tens of microseconds, or repeats and may take any time."""
    return any(isinstance(step, Repeat) for step in program.steps) or program.operations().total() > _LONG


def _check_argument(i: int, buffer: Buffer, itemsize: int) -> list[str]:
    """Goes on to the next argument if this one is as it should be, else to %refuse."""
    lines = [f"check{i}:", f"%arg{i}.p = getelementptr ptr, ptr %args, i64 {i}", f"%arg{i} = load ptr, ptr %arg{i}.p"]

    def field(name: str, kind: str, at: int) -> str:
        lines.append(f"%{name}{i}.p = getelementptr i8, ptr %arg{i}, i64 {at}")
        lines.append(f"%{name}{i} = load {kind}, ptr %{name}{i}.p")
        return f"%{name}{i}"

    def go_on_if(name: str, condition: str, target: str) -> None:
        lines.append(f"%is.{name}{i} = icmp eq {condition}")
        lines.append(f"br i1 %is.{name}{i}, label %{target}, label %refuse")

    # The type comes first: nothing else may be read from an object that is no array.
    go_on_if("type", f"ptr {field('type', 'ptr', _TYPE)}, %type", f"array{i}")
    lines.append(f"array{i}:")
    go_on_if("dtype", f"ptr {field('dtype', 'ptr', _DTYPE)}, %dtype", f"number{i}")
    lines.append(f"number{i}:")
    go_on_if("ndim", f"i32 {field('ndim', 'i32', _DIMENSIONS)}, 1", f"vector{i}")
    lines.append(f"vector{i}:")
    shape, strides = field("shape", "ptr", _SHAPE), field("strides", "ptr", _STRIDES)
    lines += [f"%size{i} = load i64, ptr {shape}", f"%stride{i} = load i64, ptr {strides}"]
    go_on_if("size", f"i64 %size{i}, {buffer.size}", f"sized{i}")
    lines.append(f"sized{i}:")
    field("data", "ptr", _DATA)
    if buffer.size > 1:
        go_on_if("dense", f"i64 %stride{i}, {itemsize}", f"check{i + 1}")
    else:  # there is no next element: the stride means nothing
        lines.append(f"br label %check{i + 1}")
    return lines


def batch_entry(renderer: Renderer) -> str:
    """void batch(context, arrays, first, last): states first to last, a register full at a time.

    `context` holds the addresses of the tables and the arena; `arrays` holds address, stride between states and stride
    between elements, in bytes, of each input and output. The last register is filled up with copies of the last state.
    """
    program = renderer.program
    code = Blocks()
    emit = code.emit
    _read_context(("tables", "arena"), emit)
    places = _lay_out(renderer, program.buffers, emit)
    emit("%end = sub i64 %last, 1")
    with code.count("%first", "%last", step=renderer.lanes) as block:
        for lane in range(renderer.lanes):
            emit(f"%lane{lane} = add i64 {block}, {lane}")
            emit(f"%inside{lane} = icmp slt i64 %lane{lane}, %last")
            emit(f"%state{lane} = select i1 %inside{lane}, i64 %lane{lane}, i64 %end")
        for i, buffer in enumerate(program.inputs):
            _copy(renderer, code, i, buffer.size, places[buffer], inwards=True)
        emit(_call_program(renderer, places))
        for i, buffer in enumerate(program.outputs):
            _copy(renderer, code, i + len(program.inputs), buffer.size, places[buffer], inwards=False)
    return function("void @batch(ptr %context, ptr %arrays, i64 %first, i64 %last)", [*code.lines(), "ret void"])


def _copy(renderer: Renderer, code: Blocks, number: int, size: int, place: str, inwards: bool) -> None:
    """Copies one array between the caller's layout and lanes, element by element."""
    vector, scalar, emit = renderer.vector, renderer.scalar, code.emit
    a = code.name("array")
    for j, (part, kind) in enumerate((("address", "ptr"), ("state", "i64"), ("element", "i64"))):
        emit(f"{a}.{part}.p = getelementptr i64, ptr %arrays, i64 {3 * number + j}")
        emit(f"{a}.{part} = load {kind}, ptr {a}.{part}.p")
    for lane in range(renderer.lanes):
        emit(f"{a}.offset{lane} = mul i64 %state{lane}, {a}.state")
        emit(f"{a}.lane{lane} = getelementptr i8, ptr {a}.address, i64 {a}.offset{lane}")
    with code.count("0", str(size)) as i:
        x = code.name("x")
        emit(f"{x}.offset = mul i64 {i}, {a}.element")
        emit(f"{x}.p = getelementptr {vector}, ptr {place}, i64 {i}")
        if not inwards:
            emit(f"{x} = load {vector}, ptr {x}.p, align {renderer.align}")
        gathered = "poison"
        for lane in range(renderer.lanes):
            emit(f"{x}.p{lane} = getelementptr i8, ptr {a}.lane{lane}, i64 {x}.offset")
            if inwards:
                emit(f"{x}.s{lane} = load {scalar}, ptr {x}.p{lane}, align 1")
                emit(f"{x}.v{lane} = insertelement {vector} {gathered}, {scalar} {x}.s{lane}, i64 {lane}")
                gathered = f"{x}.v{lane}"
            else:  # lanes that repeat the last state write the same value once more
                emit(f"{x}.s{lane} = extractelement {vector} {x}, i64 {lane}")
                emit(f"store {scalar} {x}.s{lane}, ptr {x}.p{lane}, align 1")
        if inwards:
            emit(f"store {vector} {gathered}, ptr {x}.p, align {renderer.align}")


def _read_context(names: Sequence[str], emit: Callable[[str], None]) -> None:
    """Loads the addresses that the context holds, in order."""
    for i, name in enumerate(names):
        emit(f"%{name}.p = getelementptr ptr, ptr %context, i64 {i}")
        emit(f"%{name} = load ptr, ptr %{name}.p")


def _lay_out(renderer: Renderer, buffers: Sequence[Buffer], emit: Callable[[str], None]) -> dict[Buffer, str]:
    """Where in the arena each of the buffers lies: one behind the other."""
    offset, places = 0, {}
    for i, buffer in enumerate(buffers):
        places[buffer] = f"%buffer{i}"
        emit(f"{places[buffer]} = getelementptr {renderer.vector}, ptr %arena, i64 {offset}")
        offset += buffer.size
    return places


def _call_program(renderer: Renderer, places: dict[Buffer, str]) -> str:
    arguments = [f"ptr {places[buffer]}" for buffer in renderer.program.buffers]
    return f"call fastcc void @program({', '.join([*arguments, 'ptr %tables'])})"
