"""Settings: the verdict on the mesh config, the settings of a proxy, and the mesh's networks."""

from mizzen.api.mesh.config import MeshConfig
from mizzen.api.mesh.networks import MeshNetworks
from mizzen.api.mesh.proxy import ProxyConfig
from mizzen.api.problems import Problem
from mizzen.api.validate.faults import Faults
from mizzen.api.validate.mesh.config import check_mesh_config
from mizzen.api.validate.mesh.networks import check_mesh_networks
from mizzen.api.validate.mesh.proxy import check_proxy_settings


def validate_mesh_config(config: MeshConfig) -> tuple[Problem, ...]:
    """All that is wrong with a mesh config in force."""
    return _problems(check_mesh_config(config))


def validate_proxy_settings(settings: ProxyConfig) -> tuple[Problem, ...]:
    """All that is wrong with the settings in force for a proxy, an annotation's among them."""
    return _problems(check_proxy_settings(settings, ""))


def validate_mesh_networks(networks: MeshNetworks) -> tuple[Problem, ...]:
    """All that is wrong with the mesh's networks."""
    return _problems(check_mesh_networks(networks))


def _problems(faults: Faults) -> tuple[Problem, ...]:
    return tuple(
        Problem(path=fault.path.lstrip("."), message=fault.message, code=fault.code, level=fault.level)
        for fault in faults
    )
