import { BodySyntaxError } from "../../decode/body-syntax-error.js";
import { NumberRangeError } from "../../decode/check-limits.js";
import { parseDeleteOptions, type DeleteOptions } from "../../decode/options/delete-options.js";
import { parseListOptions } from "../../decode/options/list-options.js";
import { parseWriteOptions } from "../../decode/options/write-options.js";
import { parseObjectBody } from "../../decode/parse-body.js";
import { badRequest } from "../../errors/status-error.js";
import { isObject, objectAt, stringAt, type JsonObject, type JsonValue } from "../../json.js";
import { checkSelectorSyntax } from "../../read/selectors.js";
import { applyObject } from "../../write/apply.js";
import { attemptWrite, renewable } from "../../write/attempts.js";
import { checkPlace } from "../../write/check-place.js";
import { createObject } from "../../write/create.js";
import { decodeObject, typeMetaMisfit } from "../../write/decode-object.js";
import { deleteCollection } from "../../write/delete-collection.js";
import { deleteObject, type DeleteResult } from "../../write/delete.js";
import { patchObject, patchTypeOf } from "../../write/patch.js";
import { updateObject } from "../../write/update.js";
import type { WriteContext, WriteResult } from "../../write/write-context.js";
import { renderList, renderObject, renderValue, type RenderContext } from "../answer/render.js";
import type { Answer } from "../message.js";
import { renderContextOf, writeContextOf, type ResourceRequest } from "./resource-request.js";

/** Answers a POST to a collection. */
export async function writeCreate(on: ResourceRequest): Promise<Answer> {
  const render = renderContextOf(on);
  const context = writeContextOf(on, parseWriteOptions(on.request.query, "CreateOptions"));
  const body = renewable(decodeBody(on, context), () => decodeBody(on, context));
  return renderResult(render, await attemptWrite(context, on.name, () => createObject(context, body())));
}

/** Answers a PUT of an object, its status or the finalizers of a namespace. */
export async function writeUpdate(on: ResourceRequest): Promise<Answer> {
  const { request, resource, name, subresource } = on;
  const render = renderContextOf(on);
  const context = writeContextOf(on, parseWriteOptions(request.query, "UpdateOptions"));
  const object = decodeBody(on, context);
  checkPlace(context, name, object);
  const next = renewable(object, () => decodeBody(on, context));
  const change = (): { object: JsonObject; isTracked: boolean } => ({ object: next(), isTracked: false });
  const canCreate = resource.type.strategy.createsOnUpdate && subresource === "";
  const result = await updateObject(context, {
    name,
    subresource,
    isPut: true,
    change,
    ...(canCreate ? { create: change } : {}),
  });
  return renderResult(render, result);
}

/** Answers a PATCH of an object or its status. */
export async function writePatch(on: ResourceRequest): Promise<Answer> {
  const { request, resource, name, subresource } = on;
  const render = renderContextOf(on);
  const patchType = patchTypeOf(resource.type, request.headers["content-type"]);
  const options = parseWriteOptions(request.query, "PatchOptions", { isApply: patchType === "apply" });
  const context = writeContextOf(on, options);
  const { body } = request;
  const result =
    patchType === "apply"
      ? applyObject(context, { name, subresource, body, force: options.force })
      : patchObject(context, { name, subresource, patchType, body });
  return renderResult(render, await result);
}

/** Answers a DELETE of an object. */
export async function writeDelete(on: ResourceRequest): Promise<Answer> {
  const { resource, name } = on;
  const render = renderContextOf(on);
  const options = parseDeleteOptions(deleteBody(on), on.request.query);
  const result = await deleteObject(deleteContextOf(on, options), name, options);
  const answersObject = !result.isGone || resource.type.strategy.returnsDeletedObject;
  return answersObject ? renderObject(render, 200, result.object) : renderValue(render, 200, deletedStatus(on, result));
}

/** Answers a DELETE of a collection. */
export async function writeDeleteCollection(on: ResourceRequest): Promise<Answer> {
  const { request } = on;
  const render = renderContextOf(on, { isList: true });
  const deletion = parseDeleteOptions(deleteBody(on), request.query);
  const list = parseListOptions(request.query, { isWatch: false, checkSyntax: checkSelectorSyntax });
  return renderList(render, await deleteCollection(deleteContextOf(on, deletion), { deletion, list }));
}

/** Decodes the object in the body of a request; `adjust` changes what was parsed in place. */
export function decodeBody(
  { request }: ResourceRequest,
  context: WriteContext,
  adjust: (body: JsonValue) => void = () => {},
): JsonObject {
  return decodeObject(context, request.body, () => {
    const parsed = parseObjectBody(request.body, request.headers["content-type"]);
    adjust(parsed.value);
    return parsed;
  });
}

function renderResult(render: RenderContext, { status, object }: WriteResult): Answer {
  return renderObject(render, status, object);
}

function deleteContextOf(on: ResourceRequest, { isDryRun, given }: DeleteOptions): WriteContext {
  return writeContextOf(on, { isDryRun, fieldManager: "", fieldValidation: "Ignore", force: false, given });
}

function deleteBody({ request }: ResourceRequest): JsonObject | undefined {
  if (request.body.length === 0) return undefined;
  try {
    const { value } = parseObjectBody(request.body, request.headers["content-type"]);
    if (isObject(value) || value === null) return value ?? undefined;
    throw new BodySyntaxError(typeMetaMisfit(value));
  } catch (error) {
    if (!(error instanceof BodySyntaxError || error instanceof NumberRangeError)) throw error;
    throw badRequest(`couldn't get version/kind; json parse error: ${error.message}`);
  }
}

function deletedStatus({ resource, name }: ResourceRequest, { object }: DeleteResult): JsonObject {
  const { group, plural } = resource.type;
  const uid = stringAt(objectAt(object.object, "metadata"), "uid") ?? "";
  return {
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Success",
    details: { name, ...(group === "" ? {} : { group }), kind: plural, uid },
  };
}
