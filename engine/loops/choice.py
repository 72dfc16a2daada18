"""Which loop steps an engine: a pipeline put together from what its features ask for, or none, for the plain one."""

from __future__ import annotations

from ..device.device_queue import queue_for
from ..device.graphs import StepGraphs, capture_for
from ..device_constraints.automata import DeviceAutomata
from ..errors import ConfigError
from ..features import EngineFeatures
from ..limits import Limits
from ..steps.runner import ModelRunner
from ..steps.step_sampler import StepSampler
from .device_masks import DeviceMasks
from .host_masks import HostMasks
from .look_ahead import LookAhead
from .multi_step import MultiStep
from .multi_step_pipeline import MultiStepPipeline
from .pipeline import Device, Host, Masks, Pipeline
from .slots import SlotTable


def pipeline_for(
    features: EngineFeatures,
    limits: Limits,
    runner: ModelRunner,
    sampler: StepSampler,
    host: Host,
    look_ahead: LookAhead,
    threads: int | None,
) -> Pipeline | None:
    """The loop with host and device side by side; None for the plain one (`plain_loop.py`). Raises ConfigError."""
    if not features.overlap and features.automaton == "host":
        return None
    where = runner.decoder.device
    slots = SlotTable(limits.max_sequences, where)
    queue = queue_for(where, features.overlap, threads)
    device = Device(queue, runner, sampler, slots)
    if features.automaton == "host":
        masks: Masks = HostMasks(sampler, slots, look_ahead)
        return Pipeline(host, device, masks, overlaps=features.overlap)
    automata = DeviceAutomata(slots.num_slots, sampler.vocab_size, where, queue=queue)
    on_device = DeviceMasks(sampler, slots, automata, look_ahead)
    if features.steps_per_visit == 1 and not features.cuda_graphs:
        return Pipeline(host, device, on_device, overlaps=features.overlap)
    visits = _visits(features, limits, device, automata)
    return MultiStepPipeline(host, device, on_device, visits, overlaps=features.overlap)


def _visits(features: EngineFeatures, limits: Limits, device: Device, automata: DeviceAutomata) -> MultiStep:
    if not device.runner.can_decode:
        raise ConfigError(
            "steps_per_visit and cuda_graphs need a model whose decode step reads its input from the device; "
            "this one's family is computed otherwise. Leave them at 1 and False"
        )
    longest = limits.max_model_len + 2 * features.steps_per_visit  # the host reserves blocks for as many steps ahead
    return MultiStep(
        device.runner,
        device.sampler,
        device.slots,
        automata,
        num_steps=features.steps_per_visit,
        max_blocks=-(-longest // limits.block_size),
        block_size=limits.block_size,
        graphs=StepGraphs(capture_for(device.slots.device)) if features.cuda_graphs else None,
    )
