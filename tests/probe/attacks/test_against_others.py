"""FGSM and PGD are foolbox's and ART's; APGD is not weaker than torchattacks'."""

from __future__ import annotations

import copy
import importlib
import importlib.util
import random
import sys
import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from robust_models import CLASSES, MEAN, SIDE, STD, blobs, trained  # noqa: E402
from waterjar.probe.attacks import attack, cross_entropy, dlr  # noqa: E402
from waterjar.probe.attacks._ball import Ball  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.oracle, pytest.mark.filterwarnings("ignore")]
NORMALISE = (MEAN, STD)


@pytest.fixture(autouse=True)
def foreign():
    """Their calls draw from the global generators, which no test here may move."""
    states = torch.get_rng_state(), random.getstate(), np.random.get_state()  # noqa: NPY002
    torch.manual_seed(0)
    yield
    torch.set_rng_state(states[0])
    random.setstate(states[1])
    np.random.set_state(states[2])  # noqa: NPY002


def whole(dtype=torch.float64):
    """The network behind its normalisation; in float64, in which signs of slopes are not those of rounding."""
    network, (mean, std) = copy.deepcopy(trained()).to(dtype), (torch.tensor(part, dtype=dtype) for part in NORMALISE)

    class Whole(nn.Module):
        def __init__(self):
            super().__init__()
            self.network = network

        def forward(self, images):
            return self.network((images - mean[:, None, None]) / std[:, None, None])

    return Whole().eval()


@pytest.fixture(scope="module")
def data():
    images, labels = blobs(48, seed=1)
    return images.double(), labels


@pytest.fixture(scope="module")
def foolbox():
    return pytest.importorskip("foolbox")


@pytest.fixture(scope="module")
def art():
    pytest.importorskip("art")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module("art.attacks.evasion"), importlib.import_module("art.estimators.classification")


@pytest.fixture(scope="module")
def torchattacks():
    """torchattacks, or skip. Its torchvision looks up two operators that a CPU build of torch may lack."""
    for name in ("torchattacks", "torchvision"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            importlib.import_module("torchvision")
        except RuntimeError:
            for name in [name for name in sys.modules if name.split(".")[0] == "torchvision"]:
                del sys.modules[name]
            for name in ("nms", "qnms"):
                torch.library.define(f"torchvision::{name}", "(Tensor a, Tensor b, float c) -> Tensor")
        return importlib.import_module("torchattacks")


@pytest.mark.parametrize("eps", [0.01, 0.03, 8 / 255, 0.2])
class TestFoolbox:
    def test_fgsm(self, foolbox, data, eps):
        images, labels = data
        with_bounds = foolbox.PyTorchModel(whole(), bounds=(0, 1))
        theirs = foolbox.attacks.LinfFastGradientAttack().run(with_bounds, images, labels, epsilon=eps)
        torch.testing.assert_close(attack(whole(), images, labels, "fgsm", eps=eps).images, theirs)

    def test_fgsm_under_normalisation(self, foolbox, data, eps):
        """foolbox normalises, and so do we: both move pixels."""
        images, labels = data
        network = copy.deepcopy(trained()).eval().double()
        about = {"mean": torch.tensor(MEAN).double(), "std": torch.tensor(STD).double(), "axis": -3}
        model = foolbox.PyTorchModel(network, bounds=(0, 1), preprocessing=about)
        theirs = foolbox.attacks.LinfFastGradientAttack().run(model, images, labels, epsilon=eps)
        torch.testing.assert_close(attack(network, images, labels, "fgsm", eps=eps, normalise=NORMALISE).images, theirs)

    @pytest.mark.parametrize("steps", [1, 10, 40])
    def test_pgd_from_the_image(self, foolbox, data, eps, steps):
        images, labels = data
        size = 2.5 * eps / steps
        how = foolbox.attacks.LinfPGD(abs_stepsize=size, steps=steps, random_start=False)
        theirs = how.run(foolbox.PyTorchModel(whole(), bounds=(0, 1)), images, labels, epsilon=eps)
        ours = attack(whole(), images, labels, "pgd", eps=eps, steps=steps, random_start=False, take="last")
        torch.testing.assert_close(ours.images, theirs)

    def test_pgd_from_the_same_random_start(self, foolbox, data, eps, monkeypatch):
        from waterjar.probe.attacks import Ball
        from waterjar.probe.draws import Draws

        images, labels = data
        start = Ball(images, eps).anywhere(Draws(5, range(len(images)), "attack", "pgd"))
        how = foolbox.attacks.LinfPGD(abs_stepsize=2.5 * eps / 10, steps=10, random_start=True)
        import eagerpy

        monkeypatch.setattr(how, "get_random_start", lambda x0, epsilon: eagerpy.astensor(start))
        theirs = how.run(foolbox.PyTorchModel(whole(), bounds=(0, 1)), images, labels, epsilon=eps)
        ours = attack(whole(), images, labels, "pgd", eps=eps, steps=10, seed=5, take="last")
        torch.testing.assert_close(ours.images, theirs)


@pytest.mark.parametrize("eps", [0.03, 0.1])
class TestArt:
    @staticmethod
    def classifier(art, network):
        return art[1].PyTorchClassifier(
            model=network, loss=nn.CrossEntropyLoss(), input_shape=(2, SIDE, SIDE), nb_classes=CLASSES,
            clip_values=(0.0, 1.0), device_type="cpu",
            preprocessing=tuple(np.array(part, np.float32)[:, None, None] for part in NORMALISE),
        )  # fmt: skip

    def test_fgsm(self, art, data, eps):
        images, labels = (part.float() if part.is_floating_point() else part for part in data)
        network = copy.deepcopy(trained()).eval()
        how = art[0].FastGradientMethod(self.classifier(art, network), eps=eps)
        theirs = how.generate(images.numpy(), y=np.eye(CLASSES)[labels])
        ours = attack(network, images, labels, "fgsm", eps=eps, normalise=NORMALISE).images.numpy()
        assert np.isclose(ours, theirs, atol=1e-6).mean() > 0.999  # a slope of 0 but for rounding has either sign

    def test_pgd(self, art, data, eps):
        images, labels = (part.float() if part.is_floating_point() else part for part in data)
        network = copy.deepcopy(trained()).eval()
        how = art[0].ProjectedGradientDescent(
            self.classifier(art, network), eps=eps, eps_step=eps / 4, max_iter=10, verbose=False, num_random_init=0
        )  # fmt: skip
        theirs = how.generate(images.numpy(), y=np.eye(CLASSES)[labels])
        ours = attack(
            network, images, labels, "pgd", eps=eps, normalise=NORMALISE, steps=10, step_size=eps / 4, take="last",
            random_start=False,
        )  # fmt: skip
        assert np.isclose(ours.images.numpy(), theirs, atol=1e-5).mean() > 0.999


class TestTorchattacks:
    @pytest.fixture
    @classmethod
    def doubles(cls):
        """New tensors are of float64: theirs compares losses in what it makes anew."""
        torch.set_default_dtype(torch.float64)
        yield
        torch.set_default_dtype(torch.float32)

    @pytest.fixture(scope="class")
    @classmethod
    def digits(cls):
        """The handwritten digits of scikit-learn, 8 x 8, and a network that has learned them."""
        images, labels = pytest.importorskip("sklearn.datasets").load_digits(return_X_y=True)
        pixels, wanted = torch.from_numpy(images / 16).float().reshape(-1, 1, 8, 8), torch.from_numpy(labels)
        torch.manual_seed(0)
        network = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 16, 3, padding=1), nn.ReLU(),
            nn.MaxPool2d(2), nn.Flatten(), nn.Linear(256, 32), nn.ReLU(), nn.Linear(32, 10),
        )  # fmt: skip
        optimiser = torch.optim.Adam(network.parameters(), 0.003)
        for _ in range(150):
            optimiser.zero_grad()
            nn.functional.cross_entropy(network(pixels[:1400]), wanted[:1400]).backward()
            optimiser.step()
        return network.eval(), pixels[1400:], wanted[1400:]

    @pytest.mark.parametrize("steps", [30, 100])
    @pytest.mark.parametrize(("ours", "theirs"), [("apgd_ce", "ce"), ("apgd_dlr", "dlr")])
    @pytest.mark.usefixtures("doubles")
    def test_apgd_is_not_weaker(self, torchattacks, digits, ours, theirs, steps, monkeypatch):
        """From the same starts, image by image: what theirs misleads, ours misleads, too. In float64: no ties."""
        model, images, labels = digits
        model, images = copy.deepcopy(model).double(), images.double()
        right = model(images).argmax(1) == labels
        for seed, eps in enumerate([0.03, 0.06, 0.1, 0.15]):
            torch.manual_seed(seed)  # as theirs do; then they draw a point for every image that is right
            drawn = 2 * torch.rand(images[right].shape) - 1
            widest = drawn.flatten(1).abs().amax(1).reshape(-1, 1, 1, 1)
            starts = images.clone()
            starts[right] = (images[right] + eps * drawn / widest).clamp(0.0, 1.0)
            found = {one.numpy().tobytes(): start for one, start in zip(images, starts, strict=True)}
            monkeypatch.setattr(
                Ball,
                "anywhere",
                lambda ball, _, at=found: torch.stack([at[one.numpy().tobytes()] for one in ball.centre]),
            )
            how = torchattacks.APGD(model, norm="Linf", eps=eps, steps=steps, n_restarts=1, seed=seed, loss=theirs)
            others = model(how(images, labels)).argmax(1) == labels
            mine = torch.as_tensor(attack(model, images, labels, ours, eps=eps, steps=steps, restarts=1).right)
            assert 0 < int(mine.sum()) < int(right.sum())
            assert not (mine & ~others).any(), (eps, int(mine.sum()), int(others.sum()))

    def test_fgsm(self, torchattacks, data):
        images, labels = data
        theirs = torchattacks.FGSM(whole(), eps=0.03)(images, labels)
        torch.testing.assert_close(attack(whole(), images, labels, "fgsm", eps=0.03).images, theirs)

    def test_losses(self, torchattacks, data):
        images, labels = data
        logits = whole()(images)
        reference = torchattacks.APGD(whole(), loss="dlr")
        torch.testing.assert_close(dlr(logits, labels), reference.dlr_loss(logits, labels))
        expected = nn.functional.cross_entropy(logits, labels, reduction="none")
        torch.testing.assert_close(cross_entropy(logits, labels), expected)

    def test_square_is_not_weaker(self, torchattacks):
        images, labels = blobs(60, seed=3)
        model = whole(torch.float32)
        how = torchattacks.Square(model, norm="Linf", eps=0.06, n_queries=400, n_restarts=1, seed=0)
        left = (model(how(images, labels)).argmax(1) == labels).float().mean()
        found = attack(model, images, labels, "square", eps=0.06, queries=400)
        assert found.accuracy <= float(left) + 0.05
