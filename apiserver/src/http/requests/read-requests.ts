import { elapsedMs, sleep } from "../../real-time.js";
import type { ServedType } from "../../builtin/served-type.js";
import { parseListOptions } from "../../decode/options/list-options.js";
import { notFound, plainError, tooLargeResourceVersion, type StatusError } from "../../errors/status-error.js";
import { checkPathName } from "../../object/names.js";
import { keyOf, resourceRefOf } from "../../object/object-key.js";
import { scaleOf } from "../../object/scale.js";
import { jsonEventWriter } from "../../read/event-writer.js";
import { prepareList } from "../../read/list.js";
import { checkSelectorSyntax } from "../../read/selectors.js";
import { invalidResourceVersionText, isUint64 } from "../../read/resource-version.js";
import { prepareWatch, type EventWriter } from "../../read/watch.js";
import { settled } from "../../pending-conversion.js";
import type { ResourceStore } from "../../storage/resource-store.js";
import { partialEventWriter, tableEventWriter } from "../answer/other-forms.js";
import { renderList, renderObject, renderScale, type RenderContext } from "../answer/render.js";
import type { Answer, StreamAnswer } from "../message.js";
import { renderContextOf, type ResourceRequest } from "./resource-request.js";

const FUTURE_WAIT_MS = 3_000;
const POLL_MS = 20;

/** Answers a GET of one object or of one of its subresources. */
export async function readObject(on: ResourceRequest): Promise<Answer> {
  const { resource, name, namespace, subresource, request } = on;
  const context = renderContextOf(on);
  checkPathName(name);
  await reachRevision(resource.store, request.query.get("resourceVersion") ?? "");
  const stored = resource.store.get(keyOf({ namespace, name }));
  if (stored === undefined) throw missing(resource.type, name);
  // As on a real server, which keeps forms for lists and watches only.
  const refreshed = resource.refresh(stored);
  if (refreshed !== undefined) await refreshed;
  const object = resource.read(stored);
  if (subresource === "scale") return renderScale(context, 200, scaleOf(resource.type, object));
  return renderObject(context, 200, object);
}

// Kubernetes names the state of a component in the singular, of all objects that are not there.
function missing(type: ServedType, name: string): StatusError {
  const ref = resourceRefOf(type, name);
  return notFound(type.kind === "ComponentStatus" ? { ...ref, resource: "componentstatus" } : ref);
}

/** Answers a GET of a collection. */
export async function readList(on: ResourceRequest): Promise<Answer> {
  const { resource, namespace, request } = on;
  const context = renderContextOf(on, { isList: true });
  const options = parseListOptions(request.query, { isWatch: false, checkSyntax: checkSelectorSyntax });
  const list = prepareList(resource, { ...options, namespace });
  await reachRevision(resource.store, options.resourceVersion);
  const page = settled(list);
  return renderList(context, page instanceof Promise ? await page : page);
}

/** Answers a watch. */
export function readWatch(on: ResourceRequest): StreamAnswer {
  const { resource, namespace, request, warnings } = on;
  const context = renderContextOf(on, { isList: true, isWatch: true });
  const { watchedName } = request.target ?? {};
  const query = new URLSearchParams(request.query);
  if (watchedName !== undefined) query.set("fieldSelector", `metadata.name=${watchedName}`);
  const options = parseListOptions(query, { isWatch: true, checkSyntax: checkSelectorSyntax });
  const writer = eventWriterOf(context);
  return {
    kind: "stream",
    contentType: "application/json",
    warnings,
    open: prepareWatch({ resource, namespace, options, writer }),
  };
}

function eventWriterOf({ resource, representation, query }: RenderContext): EventWriter {
  const { as, metaVersion } = representation;
  if (as === "Table") return tableEventWriter(resource, { query, version: metaVersion });
  return as === "PartialObjectMetadata" ? partialEventWriter(resource, metaVersion) : jsonEventWriter(resource);
}

// A client that has seen a newer revision than there is, for example of another server, waits for it in vain.
async function reachRevision(store: ResourceStore, resourceVersion: string): Promise<void> {
  if (resourceVersion === "" || resourceVersion === "0") return;
  if (!isUint64(resourceVersion)) throw plainError(invalidResourceVersionText(resourceVersion));
  const revision = Number(resourceVersion);
  const deadline = elapsedMs() + FUTURE_WAIT_MS;
  while (store.revision < revision) {
    if (elapsedMs() >= deadline) throw tooLargeResourceVersion(resourceVersion, String(store.revision));
    await sleep(POLL_MS);
  }
}
