"""Numbers of rows as LLVM IR: loaded, computed and stored column by column, or several columns at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from coupler.graph.llvm.blocks import Blocks
from coupler.graph.llvm.functions import Functions
from coupler.rows import ADD, SUBTRACT

if TYPE_CHECKING:
    from coupler.graph.llvm.render import Renderer

_FEW = 2  # numbers that are computed one by one rather than in a register that is not full


class RowAccess:
    """Code with which operations on rows load and store numbers.

    Attributes:
        r: the renderer, which knows the number format and how many lanes there are.
    """

    def __init__(self, renderer: Renderer) -> None:
        self.r = renderer
        self._intrinsics = Functions(renderer)
        self._mask: str | None = None  # which numbers of a register are loaded and stored; all if there is none

    @property
    def _wide(self) -> int:
        """The number of a single state's numbers that share a register."""
        return self.r.register if self.r.lanes == 1 else 1

    def _spread(self, code: Blocks, factor: str) -> str:
        kind = f"<{self._wide} x {self.r.scalar}>"
        code.emit(f"{factor}.i = insertelement {kind} poison, {self.r.scalar} {factor}, i64 0")
        everywhere = f"<{self._wide} x i32> zeroinitializer"
        code.emit(f"{factor}.w = shufflevector {kind} {factor}.i, {kind} poison, {everywhere}")
        return f"{factor}.w"

    def _columns(self, code: Blocks, width: str, body: Callable[[Callable[[str], None], str, str], None]) -> None:
        """A loop over numbers that lie side by side, several at once where they may share a register.

        The numbers left over at the end share a masked register, or are treated one by one if they are few.
        """
        if self._wide == 1:
            with code.count("0", width) as c:
                body(code.emit, self.r.vector, c)
            return
        kind, x = f"<{self._wide} x {self.r.scalar}>", code.name("whole")
        code.emit(f"{x} = and i64 {width}, -{self._wide}")
        with code.count("0", x, step=self._wide) as c:
            body(code.emit, kind, c)
        several, few, after = (code.new_label(stem) for stem in ("several", "few", "after"))
        if self._wide > _FEW:
            code.emit(f"{x}.n = sub i64 {width}, {x}")
            code.emit(f"{x}.more = icmp sgt i64 {x}.n, {_FEW}")
            code.emit(f"br i1 {x}.more, label %{several}, label %{few}")
            code.block(several)
            ones, everywhere = f"<{self._wide} x i64>", f"<{self._wide} x i32> zeroinitializer"
            code.emit(f"{x}.i = insertelement {ones} poison, i64 {x}.n, i64 0")
            code.emit(f"{x}.w = shufflevector {ones} {x}.i, {ones} poison, {everywhere}")
            places = ", ".join(f"i64 {i}" for i in range(self._wide))
            code.emit(f"{x}.m = icmp slt {ones} <{places}>, {x}.w")
            self._mask = f"{x}.m"
            body(code.emit, kind, x)
            self._mask = None
            code.emit(f"br label %{after}")
            code.block(few)
        with code.count(x, width) as c:
            body(code.emit, self.r.vector, c)
        if self._wide > _FEW:
            code.emit(f"br label %{after}")
            code.block(after)

    def _place(self, emit: Callable[[str], None], memory: str, at: str, c: str, x: str) -> str:
        emit(f"{x}.e = add i64 {at}, {c}")
        emit(f"{x}.p = getelementptr {self.r.vector}, ptr {memory}, i64 {x}.e")
        return f"{x}.p"

    def _load(self, emit: Callable[[str], None], kind: str, memory: str, at: str, c: str, x: str) -> str:
        place = self._place(emit, memory, at, c, x)
        if self._mask is None or "<" not in kind:
            emit(f"{x} = load {kind}, ptr {place}, align {self.r.align}")
        else:
            name, mask = f"@llvm.masked.load.{self._suffix(kind)}.p0", f"<{self._wide} x i1>"
            self._intrinsics.declare(f"declare {kind} {name}(ptr, i32 immarg, {mask}, {kind})")
            others = f"{mask} {self._mask}, {kind} zeroinitializer"
            emit(f"{x} = call {kind} {name}(ptr {place}, i32 {self.r.align}, {others})")
        return x

    def _store(self, emit: Callable[[str], None], kind: str, memory: str, at: str, c: str, value: str, x: str) -> None:
        place = self._place(emit, memory, at, c, x)
        if self._mask is None or "<" not in kind:
            emit(f"store {kind} {value}, ptr {place}, align {self.r.align}")
        else:
            name, mask = f"@llvm.masked.store.{self._suffix(kind)}.p0", f"<{self._wide} x i1>"
            self._intrinsics.declare(f"declare void {name}({kind}, ptr, i32 immarg, {mask})")
            emit(f"call void {name}({kind} {value}, ptr {place}, i32 {self.r.align}, {mask} {self._mask})")

    def _suffix(self, kind: str) -> str:
        """The suffix that LLVM appends to the names of functions for this type."""
        return ("" if "<" not in kind else f"v{kind.split()[0][1:]}") + ("f64" if self.r.scalar == "double" else "f32")

    def _fused(
        self, emit: Callable[[str], None], kind: str, operation: int, factor: str, value: str, old: str, x: str
    ) -> str:
        """old ± factor · value, rounded once where the processor can."""
        if not self.r.fused:
            emit(f"{x}.p = fmul {kind} {factor}, {value}")
            emit(f"{x}.a = {'fadd' if operation == ADD else 'fsub'} {kind} {old}, {x}.p")
            return f"{x}.a"
        if operation == SUBTRACT:
            emit(f"{x}.g = fneg {kind} {factor}")
            factor = f"{x}.g"
        suffix = self._suffix(kind)
        self._intrinsics.declare(f"declare {kind} @llvm.fma.{suffix}({kind}, {kind}, {kind})")
        emit(f"{x}.a = call {kind} @llvm.fma.{suffix}({kind} {factor}, {kind} {value}, {kind} {old})")
        return f"{x}.a"
