"""A small convolutional network, trained for many agents and many settings at once.

Symbols: s trials, of which C are trained together; A agents; n images of the agent that has
most; b images of a batch; P numbers of a network: kernels (weights) and biases, in one row.
θ (C, P) networks; t (C, 1) how many updates each has had.

The network: 5 × 5 convolution in steps of 2 to 8 channels of 12 × 12, the largest of each 2 × 2,
ReLU; 3 × 3 convolution to 16 channels of 4 × 4, ReLU; 10 linear outputs. As products of matrices,
with what a kernel sees laid out in a row, a patch:
patches (C, b, 144, 25) -> (C, b, 36, 8) -> (C, b, 16, 72) -> (C, b, 256) -> outputs (C, b, 10).

An agent with fewer than n images has blank ones in their place. These belong to no class: their
row of the marks (A, n, 10), which are 1 at an image's class, is zero, so they weigh nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sottovoce.arrays import Array, FloatArray, IntArray
from sottovoce.device import Device
from sottovoce.errors import MissingExtra, check

CLASSES = 10
KERNELS = ((25, 8), (72, 16), (256, CLASSES))  # inputs and outputs of each layer
SIZES = [size for inputs, outputs in KERNELS for size in (inputs * outputs, outputs)]
EPOCHS, BATCH = 20, 32
SEED = 20210  # of the first weights and of the order of the images
BETA, BETA_SQUARE, TINY = 0.9, 0.999, 1e-7  # Adam's β1, β2 and ε
TOGETHER = {"cpu": 16, "cuda": 4096}  # trials: what fits in cache, or fills the device


@dataclass(frozen=True)
class Images:
    """Every agent's images (n_i, 28, 28), ink 1 on background 0, and their classes (n_i,)."""

    train_x: list[NDArray[np.float32]]
    train_y: list[IntArray]
    valid_x: list[NDArray[np.float32]]
    valid_y: list[IntArray]

    def __post_init__(self) -> None:
        counts = [len(each) for each in vars(self).values()]
        check(len(set(counts)) == 1, "the four lists must be equally long", lengths=counts)
        for x, y in zip(self.train_x + self.valid_x, self.train_y + self.valid_y, strict=True):
            fits = len(y) > 0 and x.shape == (len(y), 28, 28)
            check(fits, "images must be (n, 28, 28) for n > 0 classes", images=x.shape, n=len(y))
            known = bool(np.all((y >= 0) & (y < CLASSES)))
            check(known, "classes must be 0 to 9", lowest=y.min(), highest=y.max())


@dataclass(frozen=True)
class Laid:
    """The images of A agents as the networks take them, and their order in every epoch."""

    train: tuple[Array, Array]  # patches (A, n, 144, 25) and marks (A, n, 10)
    valid: tuple[Array, Array]
    orders: Array  # (A, epochs, n)


def train_and_score(
    images: Images, agents: IntArray, settings: FloatArray, device: Device
) -> FloatArray:
    """1 − validation error of a network for each trial: (s,) and (s, 3) -> (s,).

    A trial is an agent, by its number, and its settings: learning rate, decay and l2. A network
    with outputs that are not finite scores like one that always answers the first class.
    """
    check_trials(len(images.train_x), agents, settings)
    torch, target = library_and_device(device)
    together = TOGETHER.get(target.type, TOGETHER["cpu"])
    asked, rows = np.unique(agents, return_inverse=True)
    laid = laid_out(images, asked, torch, target)
    scores = np.zeros(len(agents))
    for start in range(0, len(agents), together):
        chunk = slice(start, start + together)
        row = torch.as_tensor(rows[chunk], device=target)
        networks = trained(laid, row, settings[chunk], torch)
        scores[chunk] = scored(networks, laid.valid[0][row], laid.valid[1][row]).cpu()
    return scores


def check_trials(count: int, agents: IntArray, settings: FloatArray) -> None:
    """Refuse trials of agents that are not there, or with impossible settings."""
    there = bool(np.all((agents >= 0) & (agents < count)))
    check(there, "a trial's agent must be one of those with images", count=count, agents=agents)
    fits = settings.shape == (len(agents), 3)
    check(fits, "settings must be (trials, 3)", trials=len(agents), shape=settings.shape)
    sound = bool(np.all(np.isfinite(settings) & (settings >= 0)))
    check(sound, "learning rate, decay and l2 must be finite and not negative", settings=settings)


def library_and_device(device: Device) -> tuple[Any, Any]:
    """PyTorch and the device to use: the CPU, where it is NumPy's."""
    if device.torch is not None:
        return device.torch, device.device
    try:
        import torch
    except ImportError as error:
        raise MissingExtra("training networks", "torch") from error
    return torch, torch.device("cpu")


def laid_out(images: Images, asked: IntArray, torch: Any, device: Any) -> Laid:
    """The images of the agents asked for, on the device.

    Blank images fill up to the most that any agent has, asked for or not, so that a trial meets
    the same shapes, and the same rounding, in whatever company.
    """

    def padded(x: list[NDArray[np.float32]], y: list[IntArray]) -> tuple[Array, Array]:
        most = max(map(len, y))
        ink = np.zeros((len(asked), most, 28, 28), dtype=np.float32)
        marks = np.zeros((len(asked), most, CLASSES), dtype=np.float32)
        for row, agent in enumerate(asked):
            ink[row, : len(y[agent])] = x[agent]
            marks[row, np.arange(len(y[agent])), y[agent]] = 1.0
        patches = patches_of(torch.as_tensor(ink, device=device))
        return patches, torch.as_tensor(marks, device=device)

    train, valid = padded(images.train_x, images.train_y), padded(images.valid_x, images.valid_y)
    orders = np.tile(np.arange(train[1].shape[1]), (len(asked), EPOCHS, 1))
    for row, agent in enumerate(asked):
        own = orders[row, :, : len(images.train_y[agent])]
        np.random.default_rng([SEED, agent]).permuted(own, axis=1, out=own)
    return Laid(train, valid, torch.as_tensor(orders, device=device))


def patches_of(ink: Array) -> Array:
    """What the first kernel sees: (A, n, 28, 28) -> (A, n, 144, 25); 36 apart are pooled."""
    seen = ink.unfold(2, 5, 2).unfold(3, 5, 2).unflatten(3, (6, 2)).unflatten(2, (6, 2))
    return seen.permute(0, 1, 3, 5, 2, 4, 6, 7).reshape(*ink.shape[:2], 144, 25)


def first_network() -> NDArray[np.float32]:
    """The numbers every network starts from, (P,): kernels by He's rule, biases zero."""
    random = np.random.default_rng(SEED)
    parts: list[FloatArray] = []
    for inputs, outputs in KERNELS:
        kernel = random.standard_normal(inputs * outputs) * np.sqrt(2 / inputs)
        parts += [kernel, np.zeros(outputs)]
    return np.concatenate(parts).astype(np.float32)


def outputs_of(networks: Array, patches: Array) -> Array:
    """θ (C, P) and patches (C, b, 144, 25) -> (C, b, 10), unscaled log probabilities."""
    count, size = patches.shape[:2]
    parts = networks.split(SIZES, dim=1)
    kernels = [part.unflatten(1, shape) for part, shape in zip(parts[::2], KERNELS, strict=True)]
    biases = [part.unsqueeze(1) for part in parts[1::2]]
    seen = biases[0].baddbmm(patches.reshape(count, size * 144, 25), kernels[0])
    pooled = seen.reshape(count, size, 4, 36, 8).amax(2).relu().reshape(count, size, 6, 6, 8)
    around = pooled.unfold(2, 3, 1).unfold(3, 3, 1).reshape(count, size * 16, 72)
    shapes = biases[1].baddbmm(around, kernels[1]).relu()
    return biases[2].baddbmm(shapes.reshape(count, size, 256), kernels[2])


def losses(networks: Array, patches: Array, marks: Array, l2: Array) -> Array:
    """Mean cross-entropy of the real images + l2 · squared length of the kernels, (C,)."""
    surprise = -(marks * outputs_of(networks, patches).log_softmax(-1)).sum((1, 2))
    length = sum(kernel.square().sum(1) for kernel in networks.split(SIZES, dim=1)[::2])
    return surprise / marks.sum((1, 2)).clamp(min=1) + l2 * length


def trained(laid: Laid, rows: Array, settings: FloatArray, torch: Any) -> Array:
    """θ (C, P) by Adam, for agents by their rows in `laid` (C,) and settings (C, 3)."""
    like = {"dtype": torch.float32, "device": rows.device}
    rate, decay, l2 = torch.as_tensor(settings, **like).T[..., None]
    networks = torch.as_tensor(first_network(), **like).repeat(len(rows), 1)
    mean, square, t = networks * 0, networks * 0, rate * 0
    all_patches, all_marks = laid.train
    for epoch in range(EPOCHS):
        for start in range(0, all_marks.shape[1], BATCH):
            batch = (rows[:, None], laid.orders[rows, epoch, start : start + BATCH])
            marks = all_marks[batch]
            networks.requires_grad_()
            # a network's slope is that of its own loss: no other depends on it
            loss = losses(networks, all_patches[batch], marks, l2[:, 0]).sum()
            (slope,) = torch.autograd.grad(loss, networks)
            # 0 where an agent's images are used up: its network then stays as it is
            real = marks.amax((1, 2))[:, None]
            step = real * rate / (1 + decay * t)
            t = t + real
            mean = mean + real * (1 - BETA) * (slope - mean)
            square = square + real * (1 - BETA_SQUARE) * (slope.square() - square)
            spread = (square / (1 - BETA_SQUARE**t)).sqrt() + TINY
            networks = networks.detach() - step * mean / (1 - BETA**t) / spread
    return networks


def scored(networks: Array, patches: Array, marks: Array) -> Array:
    """The share of the real images whose class has the largest output, (C,)."""
    outputs = outputs_of(networks, patches)
    finite = outputs.isfinite().flatten(1).all(1)[:, None]
    answers = outputs.argmax(-1).where(finite, 0)
    return marks.gather(2, answers[..., None]).sum((1, 2)).double() / marks.sum((1, 2))
