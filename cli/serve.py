"""`maskwright serve`: a model behind OpenAI's HTTP interface."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Annotated, Any

import typer

from ..engine.device.profiling import profiled
from ..errors import UsageError
from ..model_folder import EMBEDDED
from ..planning import check_prompt_style
from .known_errors import not_installed
from .model_options import (
    MODEL,
    DeviceOption,
    DownloadOption,
    DtypeOption,
    ModelOption,
    ProfileOption,
    RevisionOption,
    engine_options,
    engine_parameters,
    load_model,
)
from .options import given_options, option_parameters, with_parameters

try:
    from ..server.cluster.settings import ClusterSettings
    from ..server.run import prepare
    from ..server.run import serve as run_server
    from ..server.settings import ServerSettings
except ModuleNotFoundError as error:
    raise not_installed("serve", error) from error

SERVER, CLUSTER = "Server", "Cluster (with --ray)"


def serve(
    model: ModelOption = EMBEDDED,
    revision: RevisionOption = None,
    download: DownloadOption = False,
    device: DeviceOption = "auto",
    dtype: DtypeOption = "auto",
    prompt_style: Annotated[
        str, typer.Option(help="How prompts of /v1/completions are rendered: auto, plain, chat or task.", rich_help_panel=MODEL)
    ] = "auto",
    ray: Annotated[
        bool, typer.Option("--ray", help="Several engines on Ray Serve, behind one address.", rich_help_panel=CLUSTER)
    ] = False,
    profile: ProfileOption = None,
    **options: Any,
) -> None:
    """Serve a model over HTTP, as OpenAI's interface."""
    settings = ServerSettings(**given_options(ServerSettings, options))
    if not settings.api_key and (key := os.environ.get("MASKWRIGHT_API_KEY")):
        settings = replace(settings, api_key=(key,))
    engine = engine_options(options) | settings.model_options
    check_prompt_style(prompt_style)
    cluster = given_options(ClusterSettings, options)
    if ray:
        if profile is not None:
            raise UsageError("--profile names the parts of one engine's steps: it does not go together with --ray")
        named = {"device": device, "dtype": dtype, "revision": revision, "download": download, "prompt_style": prompt_style}
        _serve_on_ray(str(model), named | engine_options(options), settings, ClusterSettings(**cluster))
        return
    if cluster:
        raise UsageError(f"--{next(iter(cluster)).replace('_', '-')} is about several engines: it needs --ray")
    ground = prepare(settings)  # with what is wrong told before a model is loaded
    with ground.listening:
        llm = load_model(
            model, device, dtype, revision=revision, download=download, says_all=True, prompt_style=prompt_style, **engine
        )
        with profiled(profile):
            run_server(llm, settings, str(model), ground)


def _serve_on_ray(model: str, options: dict[str, Any], settings: ServerSettings, cluster: ClusterSettings) -> None:
    try:
        from ..server.ray.options import ServedModel
        from ..server.ray.run import serve_on_ray
    except ModuleNotFoundError as error:
        raise not_installed("serve --ray", error, extra="ray") from error
    serve_on_ray(ServedModel(model, options), settings, cluster)


def command() -> Any:
    """The command with one option for each field of ServerSettings, ClusterSettings, EngineFeatures and EngineConfig."""
    app = typer.Typer(add_completion=False)
    servers = [(ServerSettings, SERVER), (ClusterSettings, CLUSTER)]
    parameters = [each for kind, panel in servers for each in option_parameters(kind, panel, shows_defaults=True)]
    parameters += engine_parameters()
    app.command()(with_parameters(serve, parameters))
    return typer.main.get_command(app)
