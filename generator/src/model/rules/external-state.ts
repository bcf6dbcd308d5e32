import { didYouMean, quote, type Diagnostic } from "../../diagnostic.js";
import type { ResourceModel } from "../project-model.js";
import { ruleOfController, type ResolvedDependent } from "../resolved-project.js";
import { fieldAt } from "../schema-path.js";

type Said = Pick<Diagnostic, "message" | "hint"> & { readonly at: string };

/** Finds external dependents whose ids cannot be kept where their spec says. */
export const checkExternalState = ruleOfController(({ spec: { document }, primary, dependents }) =>
  dependents.flatMap((dependent): Diagnostic[] => {
    const said = primary === undefined ? undefined : problemOf(dependent, primary);
    if (said === undefined) return [];
    const { message, hint, at } = said;
    const place = document.valueAt([...dependent.path, "external", "state", at]);
    return [{ severity: "error", rule: "external-state", message, ...place, ...(hint === undefined ? {} : { hint }) }];
  }),
);

function problemOf({ name, spec: { external, bulk } }: ResolvedDependent, primary: ResourceModel): Said | undefined {
  const { state, capabilities } = external ?? {};
  if (state === undefined) return undefined;
  const at = state.status === undefined ? "configMap" : "status";
  if (capabilities !== undefined && !capabilities.includes("create")) {
    const message = `${quote(name)} has no id to keep: its capabilities lack create`;
    return { message, hint: "remove state, or add create to the capabilities", at };
  }
  if (state.status !== undefined) return problemOfStatus(state.status, { name, primary, isBulk: bulk !== undefined });
  if (primary.scope === "Namespaced") return undefined;
  const message = `the ids of ${quote(name)} would be in a ConfigMap beside the primary, and ${primary.kind} is in no namespace`;
  return { message, hint: "keep them in its status: state: { status: path }", at };
}

interface Holder {
  readonly name: string;
  readonly primary: ResourceModel;
  readonly isBulk: boolean;
}

/** An id is a text; those of items are texts by any keys. */
function problemOfStatus(path: string, { name, primary, isBulk }: Holder): Said | undefined {
  const at = "status";
  if (!primary.hasStatusSubresource) {
    const message = `the ids of ${quote(name)} would be in the status of ${primary.kind}, which has no status subresource`;
    return { message, hint: "add it to the CRD, or keep them in a ConfigMap: state: { configMap: true }", at };
  }
  const found = fieldAt(primary, ["status", ...path.split(".")]);
  if (found.kind === "any") return undefined;
  if (found.kind === "unknown") {
    const before = path.split(".").slice(0, Math.max(0, found.depth - 1));
    const candidates = found.known.map((field) => [...before, field].join("."));
    const message = `${primary.kind} has no ${quote(`status.${path}`)}, so the API server would not keep the id of ${quote(name)}`;
    return { message, hint: didYouMean(path, candidates)?.hint ?? "add it to the CRD", at };
  }
  const isFit = isBulk ? found.kind === "map" : found.kind === "scalar" && found.schema?.["type"] === "string";
  if (isFit) return undefined;
  const what = isBulk
    ? `the ids of ${quote(name)}, which are texts by keys`
    : `the id of ${quote(name)}, which is a text`;
  return { message: `${quote(`status.${path}`)} of ${primary.kind} cannot hold ${what}`, at };
}
