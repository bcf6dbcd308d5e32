"""Uses an API server the way Python controllers do and prints one line of JSON for each thing it found.

It is given a kubeconfig and a namespace. Nothing it prints differs from run to run.
"""

import json
import sys
import threading

from kubernetes import client, config, dynamic, watch
from kubernetes.client.exceptions import ApiException
from kubernetes.informer import ADDED, DELETED, MODIFIED, SharedInformer

TIMEOUT_SECONDS = 30


def found(check, **facts):
    print(json.dumps({"check": check, **facts}, sort_keys=True), flush=True)


def config_map(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def crud(core, namespace):
    created = core.create_namespaced_config_map(namespace, config_map("crud", a="1"))
    created.data["a"] = "2"
    updated = core.replace_namespaced_config_map("crud", namespace, created)
    patched = core.patch_namespaced_config_map("crud", namespace, {"data": {"b": "3"}})
    status = core.delete_namespaced_config_map("crud", namespace)
    status = core.api_client.sanitize_for_serialization(status)
    found("crud", updated=updated.data["a"], patched=patched.data, deleted=status["status"])


def errors(core, namespace):
    made = core.create_namespaced_config_map(namespace, config_map("errors"))
    made.metadata.labels = {"a": "b"}
    core.replace_namespaced_config_map("errors", namespace, made)
    told = {}
    calls = {
        "conflict": lambda: core.replace_namespaced_config_map("errors", namespace, made),
        "exists": lambda: core.create_namespaced_config_map(namespace, config_map("errors")),
        "absent": lambda: core.read_namespaced_config_map("absent", namespace),
        "invalid": lambda: core.create_namespaced_config_map(namespace, config_map("Not a name")),
    }
    for name, call in calls.items():
        try:
            call()
        except ApiException as error:
            told[name] = f"{error.status} {json.loads(error.body)['reason']}"
    found("errors", **told)


def pages(core, namespace):
    for index in range(5):
        core.create_namespaced_config_map(namespace, config_map(f"page-{index}"))
    names, token = [], None
    while token != "":
        page = core.list_namespaced_config_map(namespace, limit=2, _continue=token)
        names.append([item.metadata.name for item in page.items if item.metadata.name.startswith("page-")])
        token = page.metadata._continue or ""
    found("pages", names=sorted(sum(names, [])), count=len(names))


def custom(api, namespace):
    widgets = dynamic.DynamicClient(api).resources.get(api_version="example.com/v1", kind="Widget")
    body = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "custom"}, "spec": {"size": 3}}
    created = widgets.create(body=body, namespace=namespace)
    applied = widgets.server_side_apply(
        body={**body, "spec": {"size": 4}}, namespace=namespace, field_manager="python", force_conflicts=True
    )
    found("custom", kind=created.kind, size=applied.spec.size, generation=applied.metadata.generation)


def watched(core, namespace):
    version = core.list_namespaced_config_map(namespace).metadata.resource_version
    core.create_namespaced_config_map(namespace, config_map("watched"))
    core.patch_namespaced_config_map("watched", namespace, {"data": {"a": "1"}})
    core.delete_namespaced_config_map("watched", namespace)
    events = []
    stream = watch.Watch()
    for event in stream.stream(
        core.list_namespaced_config_map,
        namespace,
        resource_version=version,
        field_selector="metadata.name=watched",
        timeout_seconds=TIMEOUT_SECONDS,
    ):
        events.append(event["type"])
        if event["type"] == "DELETED":
            stream.stop()
    found("watch", events=events)


def informer(core, namespace):
    core.create_namespaced_config_map(namespace, config_map("known", a="1"))
    told, seen = [], {ADDED: threading.Event(), MODIFIED: threading.Event(), DELETED: threading.Event()}
    known = threading.Event()
    source = SharedInformer(list_func=core.list_namespaced_config_map, namespace=namespace)

    def handler(kind):
        def handle(config_map):
            if config_map.metadata.name == "known":
                known.set()
            if config_map.metadata.name == "informed":
                told.append(kind)
                seen[kind].set()

        return handle

    for kind in seen:
        source.add_event_handler(kind, handler(kind))
    source.start()
    known.wait(TIMEOUT_SECONDS)
    core.create_namespaced_config_map(namespace, config_map("informed", a="1"))
    seen[ADDED].wait(TIMEOUT_SECONDS)
    core.patch_namespaced_config_map("informed", namespace, {"data": {"a": "2"}})
    seen[MODIFIED].wait(TIMEOUT_SECONDS)
    cached = source.cache.get_by_key(f"{namespace}/informed").data
    core.delete_namespaced_config_map("informed", namespace)
    seen[DELETED].wait(TIMEOUT_SECONDS)
    gone = source.cache.get_by_key(f"{namespace}/informed") is None
    source.stop()
    found("informer", told=told, cached=cached, gone=gone)


def main(kubeconfig, namespace):
    api = config.new_client_from_config(kubeconfig)
    core = client.CoreV1Api(api)
    core.create_namespace({"metadata": {"name": namespace}})
    crud(core, namespace)
    errors(core, namespace)
    pages(core, namespace)
    custom(api, namespace)
    watched(core, namespace)
    informer(core, namespace)


if __name__ == "__main__":
    main(*sys.argv[1:])
