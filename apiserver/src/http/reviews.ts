import { parseWriteOptions } from "../decode/options.js";
import { answerReview, checkedReview } from "../identity/reviews.js";
import { type JsonObject, stringAt } from "../json.js";
import { metadataOf } from "../object/object-meta.js";
import { admitPart } from "../write/created-part.js";
import { type ResourceRequest, decodeBody, renderContextOf, writeContextOf } from "./handlers.js";
import { renderValue } from "./representation.js";
import type { Answer } from "./request-info.js";

/** Handles the POST of a review, which is not stored. */
export async function createReview(on: ResourceRequest): Promise<Answer> {
  const { request, resource, user, identity, namespace } = on;
  const render = renderContextOf(on);
  const context = writeContextOf(on, parseWriteOptions(request.query, "CreateOptions"));
  const object = decodeBody(on, context);
  const created = { name: stringAt(metadataOf(object), "name") ?? "", subresource: "", object };
  const check = (asked: JsonObject): JsonObject => checkedReview(resource.type, asked, namespace);
  const review = await admitPart(context, created, { isTracked: true, check });
  return renderValue(render, 201, answerReview(resource.type, review, { user, identity, namespace }));
}
