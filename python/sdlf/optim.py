# SPDX-License-Identifier: MIT
"""Optimizers and learning rate schedules."""

from __future__ import annotations

from typing import Any


class Named:
    """A library class, given by its name, a str, and its options, a dict."""

    name = ""

    def __init__(self, **options: Any):
        self.options = {key: value for key, value in options.items() if value is not None}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{key}={value!r}' for key, value in self.options.items())})"


class SGD(Named):
    """Stochastic gradient descent. decay_all: weight decay also applies to biases and normalisation scales."""

    name = "sgd"

    def __init__(self, momentum: float = 0, nesterov: bool = False, weight_decay: float = 0, decay_all: bool = False):
        super().__init__(momentum=momentum, nesterov=nesterov, weight_decay=weight_decay, decay_all=decay_all)


class Adam(Named):
    """Adam; weight decay is added to the gradient."""

    name = "adam"

    def __init__(self, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8, weight_decay: float = 0, decay_all: bool = False):
        super().__init__(beta1=beta1, beta2=beta2, epsilon=epsilon, weight_decay=weight_decay, decay_all=decay_all)


class AdamW(Adam):
    """Adam with decoupled weight decay, applied to the weights directly."""

    name = "adamw"


class RMSprop(Named):
    """RMSprop; rho is PyTorch's alpha."""

    name = "rmsprop"

    def __init__(self, rho: float = 0.99, epsilon: float = 1e-8, momentum: float = 0, weight_decay: float = 0, decay_all: bool = False):
        super().__init__(rho=rho, epsilon=epsilon, momentum=momentum, weight_decay=weight_decay, decay_all=decay_all)


class Muon(Named):
    """Orthogonalised momentum for matrices and convolutions; Nesterov momentum for all other parameters."""

    name = "muon"

    def __init__(
        self, momentum: float = 0.95, weight_decay: float = 0, decay_all: bool = False, *, rest_momentum: float = 0, newton_schulz: int = 5,
        filters_only: bool = False, unit_filters: bool = False,
    ):
        super().__init__(momentum=momentum, weight_decay=weight_decay, decay_all=decay_all, rest_momentum=rest_momentum,
                         newton_schulz=newton_schulz, filters_only=filters_only, unit_filters=unit_filters)


class LARS(Named):
    """SGD with a learning rate adapted to each parameter's norm."""

    name = "lars"

    def __init__(self, momentum: float = 0.9, trust: float = 0.001, weight_decay: float = 0, decay_all: bool = False):
        super().__init__(momentum=momentum, trust=trust, weight_decay=weight_decay, decay_all=decay_all)


class Constant(Named):
    """A constant learning rate, a float; 0: the optimizer's default. warmup: the fraction of all steps, from 0 to 1, over which it rises from 0."""

    name = "constant"

    def __init__(self, peak: float = 0, warmup: float = 0):
        super().__init__(peak=peak, warmup=warmup)


class StepDecay(Named):
    """From `peak`, multiplied by gamma every `every` epochs. peak 0: the optimizer's default; warmup: fraction of all steps, from 0 to 1."""

    name = "step"

    def __init__(self, peak: float = 0, gamma: float = 0.1, every: int = 1, warmup: float = 0):
        super().__init__(peak=peak, gamma=gamma, every=every, warmup=warmup)


class Cosine(Named):
    """From peak to final along half a cosine, over all steps. peak 0: the optimizer's default; warmup: fraction of all steps, from 0 to 1."""

    name = "cosine"

    def __init__(self, peak: float = 0, final: float = 0, warmup: float = 0):
        super().__init__(peak=peak, final=final, warmup=warmup)


class Linear(Named):
    """From peak to final along a line, over all steps. peak 0: the optimizer's default; warmup: fraction of all steps, from 0 to 1."""

    name = "linear"

    def __init__(self, peak: float = 0, final: float = 0, warmup: float = 0):
        super().__init__(peak=peak, final=final, warmup=warmup)


class OneCycle(Named):
    """From peak / start_divisor up to peak over the fraction `warmup` of all steps, from 0 to 1, then down to peak / final_divisor."""

    name = "one_cycle"

    def __init__(self, peak: float = 0, warmup: float = 0.3, start_divisor: float = 25, final_divisor: float = 1e4):
        super().__init__(peak=peak, warmup=warmup, start_divisor=start_divisor, final_divisor=final_divisor)
