"""Small collectives of every kind, with the interfaces of those in the world."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

FEATURES, CLASSES, SLOTS, WIDTH, ROUTES, ANCHORS, PRINT = 6, 3, 4, 8, 2, 5, 16


def seeded(seed: int, make: Any) -> Any:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return make()


def data(count: int = 40, seed: int = 1) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return (
        torch.randn(count, FEATURES, generator=generator),
        torch.randint(0, CLASSES, (count,), generator=generator),
    )


def networks(count: int = 3) -> list[nn.Module]:
    """With everything that measuring could disturb: batch statistics and dropout."""
    return [
        seeded(
            i,
            lambda: nn.Sequential(
                nn.Linear(FEATURES, WIDTH), nn.BatchNorm1d(WIDTH), nn.ReLU(), nn.Dropout(0.3), nn.Linear(WIDTH, CLASSES)
            ),
        )
        for i in range(count)
    ]


class Voting(nn.Module):
    """As torchensemble's VotingClassifier: probabilities out of `estimators_`."""

    def __init__(self, nets: list[nn.Module], voting_strategy: str = "soft") -> None:
        super().__init__()
        self.estimators_ = nn.ModuleList(nets)
        self.voting_strategy = voting_strategy

    def forward(self, *x: Tensor) -> Tensor:
        shares = [torch.softmax(one(*x), dim=1) for one in self.estimators_]
        if self.voting_strategy == "soft":
            return sum(shares) / len(shares)  # type: ignore[return-value]
        votes = torch.stack(shares).argmax(dim=2).mode(dim=0)[0]
        return nn.functional.one_hot(votes, shares[0].shape[1]).to(shares[0].dtype)


class Boosting(nn.Module):
    """As torchensemble's GradientBoostingClassifier: a sum of logits."""

    def __init__(self, nets: list[nn.Module]) -> None:
        super().__init__()
        self.estimators_, self.shrinkage_rate = nn.ModuleList(nets), 0.5

    def forward(self, *x: Tensor) -> Tensor:
        return torch.softmax(self.shrinkage_rate * sum(one(*x) for one in self.estimators_), dim=1)


class Mixture(nn.Module):
    """Experts whose logits a gate weighs, the two heaviest of each sample."""

    def __init__(self, count: int = 3, top_k: int = 2) -> None:
        super().__init__()
        self.experts = nn.ModuleList(networks(count))
        self.gate = seeded(9, lambda: nn.Linear(FEATURES, count))
        self.top_k = top_k

    def forward(self, x: Tensor) -> Tensor:
        heavy = torch.softmax(self.gate(x), dim=1).topk(self.top_k, dim=1)
        weights = heavy.values / heavy.values.sum(dim=1, keepdim=True)
        said = torch.stack([one(x) for one in self.experts], dim=1)
        picked = said.gather(1, heavy.indices[..., None].expand(-1, -1, said.shape[2]))
        return (picked * weights[..., None]).sum(dim=1)


class Router(nn.Module):
    """(routes, weights, features), as GlobalFractalRouter.forward gives them."""

    def __init__(self) -> None:
        super().__init__()
        self.score = nn.Linear(WIDTH, WIDTH)
        self.fingerprint = nn.Parameter(torch.randn(PRINT) * 0.02)
        self.anchor_bank = Anchors()
        self.gate = nn.Linear(2 * PRINT, 1)

    def forward(
        self, x: Tensor, mailbox: list[Tensor] | None = None, target_fingerprint: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor]:
        if mailbox:
            x = x + 0.5 * torch.stack(mailbox).mean(dim=0)
        scores, routes = (self.score(x) @ x.transpose(1, 2)).topk(ROUTES, dim=-1)
        weights = torch.softmax(scores, dim=-1)
        taken = torch.gather(x[:, None].expand(-1, SLOTS, -1, -1), 2, routes[..., None].expand(-1, -1, -1, WIDTH))
        out = (taken * weights[..., None]).sum(dim=2)
        if target_fingerprint is not None:
            out = out * torch.sigmoid(self.gate(torch.cat([self.fingerprint, target_fingerprint])))
        out = x + out + self.anchor_bank(x, self.fingerprint)[0]
        if mailbox is not None:
            mailbox.append(out.mean(dim=1, keepdim=True).detach())
        return routes, weights, out


class Anchors(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fp_to_anchor = nn.Linear(PRINT, ANCHORS)
        self.out = nn.Linear(ANCHORS, WIDTH)

    def forward(self, x: Tensor, fingerprint: Tensor) -> tuple[Tensor, Tensor]:
        near = torch.sigmoid(self.fp_to_anchor(fingerprint))
        return self.out(near).expand_as(x), near


class Stream(nn.Module):
    """A stream of the seed's protocol: an encoder, a router, a pooled output."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name
        self.encoder = nn.Sequential(nn.Linear(FEATURES, SLOTS * WIDTH), nn.Tanh())
        self.router = Router()
        self.runs = 0

    @property
    def fingerprint(self) -> Tensor:
        return self.router.fingerprint

    def forward(self, x: Tensor, mailbox: list[Tensor] | None) -> Tensor:
        self.runs += 1
        _, _, out = self.router(self.encoder(x).view(len(x), SLOTS, WIDTH), mailbox)
        return out.mean(dim=1)


class Protocol(nn.Module):
    """The seed's protocol. Coupled streams read what those before them posted; the mean is the fusion."""

    def __init__(self, names: tuple[str, ...] = ("a", "b", "c"), coupled: bool = True) -> None:
        super().__init__()
        self.streams = nn.ModuleList([Stream(name) for name in names])
        self.stream_classifiers = nn.ModuleDict({name: nn.Linear(WIDTH, CLASSES) for name in names})
        self.classifier = nn.Linear(WIDTH, CLASSES)
        self.coupled = coupled
        self.left_out: tuple[str, ...] = ()

    def without(self, names: list[str]) -> Any:
        def run(x: Tensor) -> tuple[Tensor, None]:
            return self._answer(x, [one for one in self.streams if one.name not in names])[0], None

        return run

    def _answer(self, x: Tensor, streams: Any) -> tuple[Tensor, dict[str, Tensor]]:
        mailbox: list[Tensor] | None = [] if self.coupled else None
        pooled = {stream.name: stream(x, mailbox) for stream in streams}
        return self.classifier(torch.stack(list(pooled.values())).mean(dim=0)), pooled

    def forward(self, x: Tensor, return_individual: bool = False) -> tuple[Tensor, dict[str, Any] | None]:
        logits, pooled = self._answer(x, self.streams)
        if not return_individual:
            return logits, None
        return logits, {"individual_logits": {name: self.stream_classifiers[name](one) for name, one in pooled.items()}}


class Head(nn.Module):
    """As geofractal's ComposedHead: (features, info) when asked; its router and anchors are modules of their own."""

    def __init__(self) -> None:
        super().__init__()
        self.router = TopK()
        self.anchors = Anchors()
        self.fingerprint = nn.Parameter(torch.randn(PRINT) * 0.02)
        self.compare = nn.Linear(2 * PRINT, 1)
        self.norm = nn.BatchNorm1d(SLOTS)

    def forward(
        self,
        x: Tensor,
        mailbox: Any = None,
        target_fingerprint: Tensor | None = None,
        skip_first: bool = False,
        return_info: bool = False,
    ) -> Any:
        routes, weights, routed = self.router(self.norm(x))
        anchored, near = self.anchors(x, self.fingerprint)
        if target_fingerprint is not None:
            routed = routed * torch.sigmoid(self.compare(torch.cat([self.fingerprint, target_fingerprint])))
        out = x + routed + anchored
        if not return_info:
            return out
        entropy = -(weights * weights.log()).sum(dim=-1).mean().item()
        return out, {
            "routes": routes,
            "route_weights": weights,
            "route_entropy": entropy,
            "anchor_affinities": near,
            "gate_value": None,
        }


class TopK(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.score = nn.Linear(WIDTH, WIDTH)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        scores, routes = (self.score(x) @ x.transpose(1, 2)).topk(ROUTES, dim=-1)
        weights = torch.softmax(scores, dim=-1)
        taken = torch.gather(x[:, None].expand(-1, SLOTS, -1, -1), 2, routes[..., None].expand(-1, -1, -1, WIDTH))
        return routes, weights, (taken * weights[..., None]).sum(dim=2)


class FractalHead(nn.Module):
    """A GlobalFractalRouter wrapped so that it fits into a RouterCollective: features out, the rest inside."""

    def __init__(self) -> None:
        super().__init__()
        self.router = Router()

    @property
    def fingerprint(self) -> Tensor:
        return self.router.fingerprint

    def forward(self, x: Tensor, target_fingerprint: Tensor | None = None, return_info: bool = False) -> Any:
        features = self.router(x, None, target_fingerprint)[2]
        return (features, {}) if return_info else features


class Wrapper(nn.Module):
    """As geofractal's StreamWrapper."""

    def __init__(self) -> None:
        super().__init__()
        self.expansion = nn.Linear(FEATURES, SLOTS * WIDTH)

    def forward(self, x: Tensor) -> Tensor:
        return self.expansion(x).view(len(x), SLOTS, WIDTH)

    def pool(self, x: Tensor) -> Tensor:
        return x.mean(dim=1)


class Fusion(nn.Module):
    """As geofractal's GatedFusion: takes all streams; gives features and an object."""

    def __init__(self, names: tuple[str, ...]) -> None:
        super().__init__()
        self.names = names
        self.gate = nn.Linear(WIDTH * len(names), len(names))

    def forward(self, outputs: dict[str, Tensor], return_weights: bool = False) -> tuple[Tensor, Any]:
        joined = [outputs[name] for name in self.names]
        shares = torch.softmax(self.gate(torch.cat(joined, dim=1)), dim=1)
        fused = sum(shares[:, i : i + 1] * one for i, one in enumerate(joined))
        return fused, (object() if return_weights else None)


class RouterCollective(nn.Module):
    """The interface of the public geofractal RouterCollective (router_depr), and none of its code."""

    def __init__(self, names: tuple[str, ...] = ("a", "b", "c"), head: type[nn.Module] = Head) -> None:
        super().__init__()
        self.streams = nn.ModuleDict({name: Wrapper() for name in names})
        self.heads = nn.ModuleDict({name: head() for name in names})
        self.fusion = Fusion(names)
        self.classifier = nn.Linear(WIDTH, CLASSES)
        self.stream_names = list(names)
        self.stream_classifiers = nn.ModuleDict({name: nn.Linear(WIDTH, CLASSES) for name in names})

    def forward(self, x: Any, return_individual: bool = False, return_info: bool = False) -> tuple[Tensor, Any]:
        pooled, infos = {}, {}
        for i, name in enumerate(self.stream_names):
            encoded = self.streams[name](x[name] if isinstance(x, dict) else x)
            target = self.heads[self.stream_names[(i + 1) % len(self.stream_names)]].fingerprint
            routed = self.heads[name](encoded, target_fingerprint=target, return_info=return_info)
            if return_info:
                routed, infos[name] = routed
            pooled[name] = self.streams[name].pool(routed)
        fused, told = self.fusion(pooled, return_weights=return_info)
        logits = self.classifier(fused)
        if not (return_individual or return_info):
            return logits, None
        info: dict[str, Any] = {"stream_infos": infos, "fusion_info": told}
        if return_individual:
            info["individual_logits"] = {n: self.stream_classifiers[n](pooled[n]) for n in self.stream_names}
        return logits, info
