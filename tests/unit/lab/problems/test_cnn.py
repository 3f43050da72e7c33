"""The batched networks: the same as one network trained the plain way, in any company."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from sottovoce.device import device_named
from sottovoce.errors import InvalidInput, MissingExtra
from sottovoce.lab.problems import cnn
from sottovoce.lab.problems.cnn import Images, train_and_score

torch = pytest.importorskip("torch")
HERE = device_named(None)
GOOD = (0.005, 1e-3, 1e-4)


def drawn(counts: list[int], seed: int = 0, noise: float = 0.25) -> Images:
    """A class is a bright square in one of ten places, with noise; as many agents as counts."""
    random = np.random.default_rng(seed)

    def some(count: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        y = random.permutation(np.arange(count) % 10)
        x = noise * random.random((count, 28, 28))
        for image, place in zip(x, y, strict=True):
            row, column = 3 + 12 * (place // 5), 1 + 5 * (place % 5)
            image[row : row + 6, column : column + 4] += 0.7
        return x.astype(np.float32), y.astype(np.int64)

    train, valid = [some(count) for count in counts], [some(count + 3) for count in counts]
    return Images(
        [x for x, _ in train], [y for _, y in train], [x for x, _ in valid], [y for _, y in valid]
    )


def batched_networks(images: Images, agents: list[int], settings: Any) -> Any:
    laid = cnn.laid_out(images, np.arange(len(images.train_x)), torch, torch.device("cpu"))
    return cnn.trained(laid, torch.tensor(agents), np.array(settings, dtype=float), torch)


def start_from(model: Any, numbers: Any) -> None:
    """Give the plain model the numbers of a row of θ."""
    parts = torch.as_tensor(numbers).split(cnn.SIZES)
    kernels = [part.reshape(shape) for part, shape in zip(parts[::2], cnn.KERNELS, strict=True)]
    channels_last = kernels[2].reshape(4, 4, 16, 10)
    with torch.no_grad():
        model[0].weight.copy_(kernels[0].T.reshape(8, 1, 5, 5))
        model[3].weight.copy_(kernels[1].T.reshape(16, 8, 3, 3))
        model[6].weight.copy_(channels_last.permute(3, 2, 0, 1).reshape(10, 256))
        for layer, bias in zip((0, 3, 6), parts[1::2], strict=True):
            model[layer].bias.copy_(bias)


def plain_model(numbers: Any) -> Any:
    nn = torch.nn
    model = nn.Sequential(
        nn.Conv2d(1, 8, 5, stride=2),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Conv2d(8, 16, 3),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(256, 10),
    )
    start_from(model, numbers)
    return model


def plainly_trained(images: Images, agent: int, setting: tuple[float, float, float]) -> Any:
    """One network by torch.nn and torch.optim, with no blank images."""
    rate, decay, l2 = setting
    x = torch.as_tensor(images.train_x[agent])[:, None]
    y = torch.as_tensor(images.train_y[agent])
    laid = cnn.laid_out(images, np.array([agent]), torch, torch.device("cpu"))
    model = plain_model(cnn.first_network())
    adam = torch.optim.Adam(model.parameters(), lr=rate, eps=cnn.TINY)
    schedule = torch.optim.lr_scheduler.LambdaLR(adam, lambda step: 1 / (1 + decay * step))
    for order in laid.orders[0, :, : len(y)]:
        for batch in order.split(cnn.BATCH):
            adam.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(x[batch]), y[batch])
            for layer in (0, 3, 6):
                loss = loss + l2 * model[layer].weight.square().sum()
            loss.backward()
            adam.step()
            schedule.step()
    return model


def test_a_network_gives_the_same_outputs_as_the_plain_layers() -> None:
    images = drawn([5])
    numbers = torch.randn(2, sum(cnn.SIZES), generator=torch.Generator().manual_seed(0)) * 0.2
    laid = cnn.laid_out(images, np.array([0]), torch, torch.device("cpu"))
    batched = cnn.outputs_of(numbers, laid.valid[0].repeat(2, 1, 1, 1))
    for network, outputs in zip(numbers, batched, strict=True):
        plain = plain_model(network)(torch.as_tensor(images.valid_x[0])[:, None])
        torch.testing.assert_close(outputs, plain, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("setting", [(0.003, 0.0, 0.0), (0.003, 0.2, 0.02)])
def test_training_together_equals_a_plain_loop_for_each(
    setting: tuple[float, float, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    # one, two and three batches an epoch: agents wait for each other without learning
    images = drawn([20, 33, 70])
    monkeypatch.setattr(cnn, "EPOCHS", 3)
    networks = batched_networks(images, [0, 1, 2], [setting] * 3)
    laid = cnn.laid_out(images, np.arange(3), torch, torch.device("cpu"))
    batched = cnn.outputs_of(networks, laid.valid[0])
    for agent, outputs in enumerate(batched):
        x = torch.as_tensor(images.valid_x[agent])[:, None]
        plain = plainly_trained(images, agent, setting)(x).detach()
        torch.testing.assert_close(outputs[: len(x)], plain, rtol=2e-3, atol=2e-3)
        untrained = plain_model(cnn.first_network())(x)
        assert (plain - untrained).abs().max() > 0.1


def test_a_trial_scores_the_same_alone_and_in_company() -> None:
    images = drawn([12, 40, 33], noise=1.5)
    agents = np.array([2, 0, 1, 1, 2] * 4)
    settings = np.random.default_rng(1).uniform(0, [0.01, 0.02, 0.02], (len(agents), 3))
    together = train_and_score(images, agents, settings, HERE)
    assert len(agents) > cnn.TOGETHER["cpu"]
    assert len(set(together)) > 3
    for k in range(0, len(agents), 3):
        alone = train_and_score(images, agents[k : k + 1], settings[k : k + 1], HERE)
        assert alone == together[k]


def test_the_same_call_gives_the_same_scores_on_both_names_of_the_cpu() -> None:
    images, agents, settings = drawn([20, 30], noise=1.5), np.array([0, 1]), np.array([GOOD] * 2)
    scores = train_and_score(images, agents, settings, HERE)
    np.testing.assert_array_equal(scores, train_and_score(images, agents, settings, HERE))
    on_torch = train_and_score(images, agents, settings, device_named("cpu"))
    np.testing.assert_array_equal(scores, on_torch)


def test_another_agent_with_more_images_changes_nothing() -> None:
    few = drawn([20])
    many = drawn([20, 75])
    networks = batched_networks(few, [0], [GOOD])
    padded = batched_networks(
        Images(*([vars(few)[name][0], vars(many)[name][1]] for name in vars(few))), [0], [GOOD]
    )
    torch.testing.assert_close(networks, padded, rtol=1e-3, atol=1e-3)


def test_what_is_easy_is_learnt_without_error_and_by_each_agent_from_its_own() -> None:
    images = drawn([40, 50])
    turned = Images(
        images.train_x,
        [images.train_y[0], (images.train_y[1] + 1) % 10],
        images.valid_x,
        [images.valid_y[0], (images.valid_y[1] + 1) % 10],
    )
    scores = train_and_score(turned, np.array([0, 1]), np.array([GOOD] * 2), HERE)
    np.testing.assert_array_equal(scores, 1.0)


def test_without_learning_the_score_is_near_chance() -> None:
    images = drawn([40])
    settings = np.array([(0.0, 0.0, 0.0), (1e-7, 0.0, 0.0), GOOD])
    still, slow, good = train_and_score(images, np.zeros(3, dtype=np.int64), settings, HERE)
    assert still == slow < 0.4 < good


def test_decay_and_l2_hold_a_network_back() -> None:
    images = drawn([40])
    first = torch.as_tensor(cnn.first_network())
    settings = [(0.005, 0.0, 0.0), (0.005, 10.0, 0.0), (0.005, 0.0, 1.0)]
    free, decayed, shrunk = batched_networks(images, [0, 0, 0], settings)
    assert (decayed - first).norm() < 0.5 * (free - first).norm()
    assert shrunk.norm() < 0.9 * free.norm()


def test_l2_weighs_the_kernels_and_not_the_biases() -> None:
    kernels = torch.cat([torch.full((size,), float(size > 16)) for size in cnn.SIZES])
    networks = torch.stack([kernels, 3 * kernels, kernels - 5 * (kernels == 0)])
    nothing = torch.zeros(3, 2, 144, 25), torch.zeros(3, 2, 10)
    length = 25 * 8 + 72 * 16 + 256 * 10
    found = cnn.losses(networks, *nothing, torch.tensor([0.5, 0.5, 2.0]))
    torch.testing.assert_close(found, length * torch.tensor([0.5, 4.5, 2.0]))


def test_a_network_that_is_not_finite_answers_the_first_class() -> None:
    images = drawn([38])  # of the 41 to validate on, one more of the first class
    settings = np.array([(1e30, 0.0, 0.0), GOOD])
    wild, good = train_and_score(images, np.array([0, 0]), settings, HERE)
    assert wild == 5 / 41
    assert good == 1.0


def test_no_trials_give_no_scores() -> None:
    scores = train_and_score(drawn([5]), np.zeros(0, dtype=np.int64), np.zeros((0, 3)), HERE)
    assert scores.shape == (0,)


@pytest.mark.parametrize(
    ("agents", "settings", "rule"),
    [
        ([1], [GOOD], "agent must be one of those with images"),
        ([-1], [GOOD], "agent must be one of those with images"),
        ([0], [GOOD, GOOD], "settings must be"),
        ([0], [(0.1, 0.1)], "settings must be"),
        ([0], [(np.nan, 0.0, 0.0)], "finite and not negative"),
        ([0], [(0.1, -0.1, 0.0)], "finite and not negative"),
    ],
)
def test_trials_that_cannot_be_are_refused(agents: Any, settings: Any, rule: str) -> None:
    with pytest.raises(InvalidInput, match=rule):
        train_and_score(drawn([5]), np.array(agents), np.array(settings), HERE)


def test_images_that_do_not_fit_are_refused() -> None:
    x, y = np.zeros((3, 28, 28), dtype=np.float32), np.array([0, 1, 9])
    Images([x], [y], [x], [y])
    with pytest.raises(InvalidInput, match="equally long"):
        Images([x], [y], [x, x], [y])
    with pytest.raises(InvalidInput, match="28, 28"):
        Images([x], [y], [x[:2]], [y])
    with pytest.raises(InvalidInput, match="28, 28"):
        Images([x[:0]], [y[:0]], [x], [y])
    with pytest.raises(InvalidInput, match="0 to 9"):
        Images([x], [y + 1], [x], [y])


def test_without_torch_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtra, match=r"pip install 'sottovoce\[torch\]'"):
        train_and_score(drawn([5]), np.array([0]), np.array([GOOD]), HERE)
