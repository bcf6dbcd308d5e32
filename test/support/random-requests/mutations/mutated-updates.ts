// Updates of objects of built-in kinds with one or two unusual changes: of the whole object, its status, or the part that another subresource writes.
import fc, { type Arbitrary } from "../../fast-check.js";
import type { JsonObject } from "#apiserver/json.js";
import type { Step } from "../../conformance/conformance-scenario.js";
import { builtinSubresources } from "../../kinds/kind-definitions.js";
import { minimalObjects, type MinimalObject } from "../../kinds/minimal-objects.js";
import { bodyOf, mutate, pathOf, schemaOf } from "./mutated-objects.js";
import { Choices, valueOf } from "./mutations.js";
import { schemaBelow, updateOf, type Place, type Update } from "./update-steps.js";

/** An object to store on both servers, with random updates. */
export interface UpdatedObject {
  readonly kind: string;
  /** The steps to create the object and read it. If the first creation is rejected, the next one creates the object. */
  readonly stored: readonly Step[];
  /** Returns updates of the stored object. None of them is persisted. */
  readonly updatesOf: (object: JsonObject) => Update[];
  readonly cleanUp: Step;
}

// Kinds whose objects would affect other requests.
const LEFT_OUT = ["CustomResourceDefinition", "APIService"];
const UPDATES = 4;
/** Responses can contain the user, and the administrators of the two servers have different names. */
const SOMEBODY = { "Impersonate-User": "somebody", "Impersonate-Group": "system:masters" };
/** Fields that would affect other objects. */
const FOR_ALL = ["globalDefault"];

/** An object of any kind in minimal-objects.ts, with or without changes, and updates of it. */
export const updatedObject: Arbitrary<UpdatedObject> = fc.infiniteStream(fc.noBias(fc.nat())).map((numbers) => {
  const choose = new Choices((count) => (numbers.next().value as number) % count);
  const chosen = choose.from(minimalObjects.filter(({ kind }) => !LEFT_OUT.includes(kind)));
  const place = placeOf(chosen, choose);
  return {
    kind: chosen.kind,
    stored: [...setUpOf(chosen, place, choose), { method: "GET", target: `${place.path}/${place.name}`, save: "a" }],
    updatesOf: (object) => Array.from({ length: UPDATES }, () => updateOf({ chosen, place, object, choose })),
    cleanUp: { method: "DELETE", target: `${place.path}/${place.name}?gracePeriodSeconds=0`, silent: true },
  };
});

/** The name of a cluster-scoped object includes that of a namespace, so that it is unique among all sequences. */
function placeOf(chosen: MinimalObject, choose: Choices): Place {
  const path = pathOf(chosen);
  if (path.includes("$ns")) return { path, name: "a" };
  const number = () => choose.below(250);
  return { path, name: chosen.kind === "IPAddress" ? `10.${number()}.${number()}.${number()}` : "$ns-b" };
}

function setUpOf(chosen: MinimalObject, { path, name }: Place, choose: Choices): Step[] {
  const plain = bodyOf({ ...chosen, name });
  const mutated = structuredClone(plain);
  const create = (body: JsonObject): Step => ({
    ...{ method: "POST", target: path, body, silent: true },
    ...(chosen.kind === "CertificateSigningRequest" ? { headers: SOMEBODY } : {}),
  });
  const isMutated = choose.often(60);
  if (isMutated) mutate(mutated, schemaOf(chosen), choose);
  for (const key of FOR_ALL) delete mutated[key];
  const status =
    builtinSubresources(chosen).includes("status") && choose.often(40)
      ? [statusStep(chosen, { path, name }, choose)]
      : [];
  return [...(isMutated ? [create(mutated)] : []), create(plain), ...status];
}

function statusStep(chosen: MinimalObject, { path, name }: Place, choose: Choices): Step {
  const body = { status: valueOf(schemaBelow(chosen, ["status"]), 0, choose) };
  return { method: "PATCH", target: `${path}/${name}/status`, as: "merge", body };
}
