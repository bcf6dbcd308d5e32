// Updates of objects of built-in kinds that change a part or two as few would: of the whole object, of its status, or of what another endpoint writes.
import fc, { type Arbitrary } from "../../fast-check.js";
import type { JsonObject } from "#apiserver/json.js";
import type { Step } from "../../conformance/conformance-scenario.js";
import { builtinSubresources } from "../../kinds/kind-definitions.js";
import { minimalObjects, type MinimalObject } from "../../kinds/minimal-objects.js";
import { bodyOf, mutate, pathOf, schemaOf } from "./mutated-objects.js";
import { Choices, valueOf } from "./mutations.js";
import { schemaBelow, updateOf, type Place, type Update } from "./update-steps.js";

/** An object that is stored on both servers, and the choices of its updates. */
export interface UpdatedObject {
  readonly kind: string;
  /** Stores the object, and reads it last. What is refused of one creation is made by the next. */
  readonly stored: readonly Step[];
  /** Makes updates of the object as it was stored; none of them is kept. */
  readonly updatesOf: (object: JsonObject) => Update[];
  readonly cleanUp: Step;
}

// Kinds whose objects would change what becomes of other requests.
const LEFT_OUT = ["CustomResourceDefinition", "APIService"];
const UPDATES = 4;
/** Who asks is told of, and the administrators of two servers have different names. */
const SOMEBODY = { "Impersonate-User": "somebody", "Impersonate-Group": "system:masters" };
/** What would be so for others too. */
const FOR_ALL = ["globalDefault"];

/** Any object of the kinds that minimal-objects.ts has, as it is or changed, and updates of it. */
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

/** What is in no namespace has the name of one, which no other sequence has. */
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
