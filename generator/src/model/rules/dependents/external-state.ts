import { didYouMean, quote, type Diagnostic } from "../../../diagnostic.js";
import type { ResourceModel } from "../../project-model.js";
import { ruleOfController, type ResolvedController, type ResolvedDependent } from "../../build/resolved-project.js";
import { stateFieldOf, type FieldAt } from "../../schema/schema-path.js";

type Said = Pick<Diagnostic, "message" | "hint">;

const MORE = "properties: { id: { type: string }, … } to keep more than an id";
const TEXT_HINT = `give the field type: string, or ${MORE}`;
const MAP_HINT = `give the field type: object, with additionalProperties: { type: string }, or with ${MORE} of each`;

/** Finds ids of external resources that would be kept where they cannot be, or of what the operator does not create. */
export const checkExternalState = ruleOfController((controller) =>
  controller.dependents.flatMap((dependent) => {
    const { external } = dependent.spec;
    if (external?.state === undefined) return [];
    const { document } = controller.spec;
    const at = [...dependent.path, "external", "state"];
    const fail = (said: Said | undefined, place: object): Diagnostic[] =>
      said === undefined ? [] : [{ severity: "error", rule: "external-state", ...said, ...place }];
    if (external.capabilities?.includes("create") === false)
      return fail(
        {
          message: `state has no effect: the operator never creates dependent ${quote(dependent.name)}, as its capabilities lack create`,
          hint: "remove state, or add create to capabilities",
        },
        document.keyAt(at),
      );
    const { status, in: store, resource, path, perItem, type } = external.state;
    const place = perItem === undefined ? undefined : document.keyAt([...at, "perItem"]);
    const pointless = {
      message: `perItem has no effect: ${quote(dependent.name)} is no bulk dependent`,
      hint: "remove perItem",
    };
    if (place !== undefined && (dependent.spec.bulk === undefined || status !== undefined))
      return fail(
        status === undefined
          ? pointless
          : { ...pointless, message: "perItem has no effect: the status keeps the ids of all items together" },
        place,
      );
    if (type !== undefined) {
      const owner = status === undefined ? resource : controller.primary?.kind;
      const needless = {
        message: `type has no effect: the schema of ${owner} has the type of the field that keeps the id`,
        hint: `remove type; give the field ${MORE}`,
      };
      if (status !== undefined || resource !== undefined) return fail(needless, document.keyAt([...at, "type"]));
      const typePlace = document.valueAt([...at, "type"]);
      const [problem] = dependent.stateFile?.problems ?? [];
      if (problem !== undefined) return fail(problem, typePlace);
    }
    if (status !== undefined) {
      const problem = problemOfStatus(status, dependent, controller) ?? problemOfOthers(status, dependent, controller);
      return fail(problem, document.valueAt([...at, "status"]));
    }
    if (resource === undefined) {
      return fail(
        problemOfPlace(controller, store === "secret" ? "Secret" : "ConfigMap"),
        document.keyAt([...at, "in"]),
      );
    }
    if (path === undefined)
      return fail(
        {
          message: `state lacks path, the field of ${resource} that keeps the id`,
          hint: "state path: with a field, such as spec.id",
        },
        document.keyAt(at),
      );
    return fail(problemOfResource(path, dependent, controller), document.valueAt([...at, "path"]));
  }),
);

function problemOfPlace(
  { primary }: ResolvedController,
  kind: string,
  scope: ResourceModel["scope"] = "Namespaced",
): Said | undefined {
  if (primary === undefined || primary.scope === scope) return undefined;
  const isNamespaced = scope === "Namespaced";
  return {
    message: `a ${kind} cannot be beside a ${primary.kind}: ${kind} is ${isNamespaced ? "namespaced, and the primary is cluster-scoped" : "cluster-scoped, and the primary is namespaced"}`,
    hint: "keep the ids in the status: state: { status: ... }",
  };
}

function problemOfResource(
  text: string,
  dependent: ResolvedDependent,
  controller: ResolvedController,
): Said | undefined {
  const kept = stateFieldOf(dependent, controller.primary);
  // That there is no such kind is said elsewhere.
  if (kept === undefined) return undefined;
  const { field: found, keeps, isMap } = kept;
  const { kind, scope } = kept.resource;
  const elsewhere = problemOfPlace(controller, kind, scope);
  if (elsewhere !== undefined) return elsewhere;
  if (found.kind === "unknown") {
    const hint = didYouMean(text.split(".").at(-1) ?? "", found.known)?.hint ?? `there: ${found.known.join(", ")}`;
    return { message: `the schema of ${kind} has no ${quote(text)}, so the API server would drop the id`, hint };
  }
  if (keeps !== undefined) return undefined;
  return {
    message: `field ${quote(text)} of ${kind} cannot keep ${isMap ? `the ids of dependent ${quote(dependent.name)}, which are an object of strings by the keys of the items` : `the id of dependent ${quote(dependent.name)}, which is a string`}`,
    hint: isMap ? MAP_HINT : TEXT_HINT,
  };
}

function problemOfStatus(
  text: string,
  dependent: ResolvedDependent,
  { primary }: ResolvedController,
): Said | undefined {
  // That there is no such kind is said elsewhere.
  if (primary === undefined) return undefined;
  if (!primary.hasStatusSubresource)
    return {
      message: `the status of ${primary.kind} cannot keep ids: its CRD has no status subresource`,
      hint: "add subresources: { status: {} } to the CRD, or keep the ids in a ConfigMap: state: { in: configMap }",
    };
  const kept = stateFieldOf(dependent, primary);
  if (kept === undefined || kept.keeps !== undefined) return undefined;
  if (kept.field.kind === "unknown") return unknownField(text, kept.field, primary.kind);
  const { isMap } = kept;
  const name = quote(dependent.name);
  const what = isMap
    ? `the ids of dependent ${name}, which are an object of strings by the keys of the items`
    : `the id of dependent ${name}, which is a string`;
  return {
    message: `field ${quote(`status.${text}`)} of ${primary.kind} cannot keep ${what}`,
    hint: isMap ? MAP_HINT : TEXT_HINT,
  };
}

function problemOfOthers(
  text: string,
  { name }: ResolvedDependent,
  { dependents }: ResolvedController,
): Said | undefined {
  const other = dependents.find(({ spec: { external } }) => external?.state?.status === text);
  if (other === undefined || other.name === name) return undefined;
  return {
    message: `dependents ${quote(name)} and ${quote(other.name)} would keep their ids in the same field: ${quote(`status.${text}`)}`,
    hint: "give each dependent a field of its own",
  };
}

function unknownField(text: string, found: Extract<FieldAt, { kind: "unknown" }>, kind: string): Said {
  const names = text.split(".");
  // The path of the schema has "status" before.
  const before = names.slice(0, Math.max(0, found.depth - 1));
  const candidates = found.known.map((name) => [...before, name].join("."));
  if (found.depth === 0)
    return {
      message: `the schema of ${kind} has no status`,
      hint: "add it to the schema, or keep the ids in a ConfigMap",
    };
  const listed = candidates.length > 0 ? `there: ${candidates.join(", ")}` : "add it to the schema";
  const hint = didYouMean(text, candidates)?.hint ?? listed;
  return {
    message: `the schema of ${kind} has no ${quote(`status.${text}`)}, so the API server would drop the id`,
    hint,
  };
}
