import { parseWriteOptions } from "../../decode/options/write-options.js";
import { parseObjectBody } from "../../decode/parse-body.js";
import { badRequest } from "../../errors/status-error.js";
import { isObject } from "../../json.js";
import { scaleOf } from "../../object/scale.js";
import { parseConfig } from "../../write/apply.js";
import { renewable } from "../../write/attempts.js";
import { checkPlace } from "../../write/check-place.js";
import { applyPatch, parsePatch, patchTypeOf } from "../../write/patch.js";
import { applyScale, checkScaleType, decodePatchedScale, SCALE_SCHEMA, writeScale } from "../../write/scale.js";
import type { WriteContext, WriteResult } from "../../write/write-context.js";
import { renderScale } from "../answer/render.js";
import type { Answer } from "../message.js";
import { renderContextOf, writeContextOf, type ResourceRequest } from "./resource-request.js";

/** Answers a PUT or PATCH of a Scale. */
export async function writeScaleRequest(on: ResourceRequest): Promise<Answer> {
  const render = renderContextOf(on);
  const written = await (on.request.method === "PUT" ? putScale(on) : patchScale(on));
  return renderScale(render, 200, scaleOf(on.resource.type, written.object, { needsReplicas: false }));
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
