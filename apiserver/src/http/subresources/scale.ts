import { parseObjectBody } from "../../decode/body.js";
import { parseWriteOptions } from "../../decode/options.js";
import { badRequest } from "../../errors/status-error.js";
import { isObject } from "../../json.js";
import { scaleOf } from "../../object/scale.js";
import type { StoredObject } from "../../storage/store.js";
import { applyPatch, parseConfig, parsePatch, patchTypeOf } from "../../write/patch.js";
import { SCALE_SCHEMA, applyScale, checkScaleType, decodePatchedScale, writeScale } from "../../write/scale.js";
import { type WriteContext, type WriteResult, checkPlace, renewable } from "../../write/write-context.js";
import { type ResourceRequest, readObject, renderContextOf, writeContextOf } from "../handlers.js";
import { type RenderContext, renderScale } from "../representation.js";
import type { Answer } from "../request-info.js";

/** Answers a GET, PUT or PATCH of the Scale of an object. */
export async function answerScale(on: ResourceRequest): Promise<Answer> {
  if (on.request.method === "GET") return readObject(on, renderScaleOf);
  const render = renderContextOf(on);
  const written = await (on.request.method === "PUT" ? putScale(on) : patchScale(on));
  return renderScale(render, 200, scaleOf(on.resource.type, written.object, { needsReplicas: false }));
}

function renderScaleOf(context: RenderContext, object: StoredObject): Answer {
  return renderScale(context, 200, scaleOf(context.resource.type, object));
}

async function putScale(on: ResourceRequest): Promise<WriteResult> {
  const { request, name } = on;
  const context = writeContextOf(on, parseWriteOptions(request.query, "UpdateOptions"));
  const { value, duplicates } = parseObjectBody(request.body, request.headers["content-type"]);
  if (!isObject(value)) throw badRequest("the object provided is unrecognized (must be of type Scale)");
  checkScaleType(context, { value, problems: duplicates() });
  checkPlace(context, name, value);
  return writeScale(context, { name, isPut: true, change: () => value });
}

async function patchScale(on: ResourceRequest): Promise<WriteResult> {
  const { request, resource, name } = on;
  const patchType = patchTypeOf(resource.type, request.headers["content-type"]);
  const options = parseWriteOptions(request.query, "PatchOptions", { isApply: patchType === "apply" });
  const context: WriteContext = writeContextOf(on, options);
  if (patchType === "apply") {
    const { config, checkDuplicates } = parseConfig(request.body);
    checkDuplicates(context);
    return applyScale(context, { name, config, force: options.force });
  }
  const parse = (): ReturnType<typeof parsePatch> => parsePatch({ patchType, body: request.body });
  const patch = renewable(parse(), parse);
  return writeScale(context, {
    name,
    isPut: false,
    change(scale) {
      const { value, problems } = patch();
      const patched = applyPatch(scale, { patchType, value, schemaName: SCALE_SCHEMA });
      return decodePatchedScale(context, { name, patched, problems });
    },
  });
}
