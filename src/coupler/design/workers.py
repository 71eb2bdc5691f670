"""Computing the shares of a sweep: in this process, in other processes, or on the machines of a Ray cluster.

If a worker is lost, because it was killed, ran out of memory, or its machine is gone, another one computes its share.
After an error of the function, there is no second try: it would fail again.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from functools import lru_cache
from importlib import import_module
from threading import Thread
from typing import Any

from coupler.forks import imports
from coupler.model import ModelError

Task = Callable[[int], Any]  # from the number of a share to its results

_TRIES = 3  # how often a share is tried when workers are lost
_AHEAD = 2  # shares that are queued for each processor

WORKERS = ("here", "processes", "ray")


def computed(task: Task, shares: Iterable[int], on: str, workers: int | None) -> Iterator[tuple[int, Any]]:
    """The results of shares, with their numbers, as they are completed.

    Args:
        task: computes a share; it is sent to each worker once.
        shares: the numbers of the shares.
        on: one of `WORKERS`.
        workers: how many workers; if None, the number of processors, or what Ray decides.
    """
    if on == "here":
        return ((number, task(number)) for number in shares)
    return _in_processes(task, list(shares), workers) if on == "processes" else _on_ray(task, list(shares), workers)


# Processes

_task: Task | None = None  # of a worker


def _receive(task: bytes) -> None:
    global _task
    Thread(target=_end_with_parent, daemon=True).start()
    _task = pickle.loads(task)


def _end_with_parent() -> None:
    """Ends this process once the sweeping process is gone, even killed; otherwise it would wait for work for ever."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _run(number: int) -> Any:
    assert _task is not None
    try:
        return _task(number)
    except Exception as error:
        try:
            pickle.loads(pickle.dumps(error))
        except Exception:  # which would look like a worker that is lost
            raise ModelError(f"the function raised {type(error).__name__}: {error}") from None
        raise


_GUARD = 'processes import the script that runs: keep what sweeps below `if __name__ == "__main__":`'


def _in_processes(task: Task, shares: list[int], workers: int | None) -> Iterator[tuple[int, Any]]:
    if getattr(multiprocessing.current_process(), "_inheriting", False):  # which imports the script, and comes to here
        raise ModelError(f'on="processes": {_GUARD}')
    try:
        data = pickle.dumps(task)
    except Exception as error:
        raise ModelError(
            f'on="processes": the function cannot be sent to other processes: {error}; define it at the top level of '
            'a module, or use on="ray"'
        ) from None
    remaining, tries = dict.fromkeys(shares, 0), 0
    while remaining:
        tries += 1
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(workers, context, _receive, (data,)) as pool:
            try:
                waiting: dict[Future[Any], int] = {pool.submit(_run, number): number for number in remaining}
                while waiting:
                    for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                        number = waiting.pop(future)
                        result = future.result()
                        del remaining[number]
                        yield number, result
            except BrokenProcessPool:
                if tries == _TRIES:
                    raise ModelError(
                        f"workers were lost {_TRIES} times, and {len(remaining)} shares are left to do; does one need "
                        "more memory than there is? Then fewer designs at once may help. Or have they not begun: "
                        f"{_GUARD}"
                    ) from None
            finally:
                pool.shutdown(wait=False, cancel_futures=True)


# Ray


@lru_cache(maxsize=1)  # a worker does many shares with one robot, and compiles its programs once
def _unpacked(task: bytes, path: tuple[str, ...]) -> Task:
    """The task, unpickled with the module search path of the process that asks."""
    sys.path += [folder for folder in path if folder not in sys.path]
    try:
        return pickle.loads(task)
    except ImportError as error:
        raise ModelError(
            f'on="ray": a machine of the cluster cannot import the function: {error}; define it in the script that '
            'runs, or send its folder along: ray.init(..., runtime_env={"working_dir": "."})'
        ) from None


def _on_ray(task: Task, shares: list[int], workers: int | None) -> Iterator[tuple[int, Any]]:
    try:
        with imports():
            ray: Any = import_module("ray")
    except ImportError:
        raise ModelError('on="ray" needs Ray: pip install "coupler[ray]"') from None
    if not ray.is_initialized():
        ray.init(include_dashboard=False, log_to_driver=False, _node_ip_address="127.0.0.1")
    held = ray.put(ray.cloudpickle.dumps(task))
    path = tuple(sys.path)  # as processes of this machine have it

    @ray.remote(max_retries=_TRIES)
    def run(held: bytes, number: int) -> Any:
        return _unpacked(held, path)(number)

    at_once = workers or _AHEAD * max(1, int(ray.cluster_resources().get("CPU", 1)))
    remaining, waiting, tries = list(reversed(shares)), dict[Any, int](), dict[int, int]()
    try:
        while remaining or waiting:
            while remaining and len(waiting) < at_once:
                number = remaining.pop()
                waiting[run.remote(held, number)] = number
            done, _ = ray.wait(list(waiting), num_returns=1)
            for reference in done:
                number = waiting.pop(reference)
                try:
                    result = ray.get(reference)
                except ray.exceptions.RayTaskError as error:
                    raise error.cause from None
                except ray.exceptions.RayError as error:  # a worker or a machine is gone
                    tries[number] = tries.get(number, 0) + 1
                    if tries[number] == _TRIES:
                        raise ModelError(f"share {number} was lost {_TRIES} times: {error}") from None
                    remaining.append(number)
                    continue
                yield number, result
    finally:  # of a sweep that is interrupted, or fails
        for reference in waiting:
            ray.cancel(reference)
