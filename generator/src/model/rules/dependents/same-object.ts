import { formatPosition, quote, type Diagnostic } from "../../../diagnostic.js";
import { ruleOfController, type ResolvedDependent } from "../../build/resolved-project.js";

/**
 * Finds dependents that would write one object, as far as the spec tells: both select the same name.
 *
 * What `desired` names is known only at run time, where the operator refuses to write what belongs to another dependent.
 */
export const checkSameObject = ruleOfController(({ spec: { document }, dependents }) => {
  const known = new Map<string, ResolvedDependent[]>();
  return dependents.flatMap((dependent): Diagnostic[] => {
    const { name, spec, path, resource } = dependent;
    const objectName = selectedName(spec.fieldSelector);
    if (resource === undefined || objectName === undefined || spec.mode === "readOnly") return [];
    const { group, kind } = resource;
    const key = JSON.stringify([group, kind, spec.namespace ?? "", spec.cluster ?? "", objectName]);
    const others = known.get(key) ?? [];
    known.set(key, [...others, dependent]);
    // Two that have conditions may take turns.
    const other = others.find((each) => !isConditional(each) || !isConditional(dependent));
    if (other === undefined) return [];
    const place = formatPosition(document.valueAt([...other.path, "fieldSelector"]).position);
    return [
      {
        severity: "error",
        rule: "same-object",
        message: `dependents ${quote(name)} and ${quote(other.name)} would write the same object: the ${kind} ${quote(objectName)}, first at ${place}`,
        ...document.valueAt([...path, "fieldSelector"]),
        hint: "select another name, or make one dependent of the two",
      },
    ];
  });
});

function isConditional({ spec }: ResolvedDependent): boolean {
  return spec.activationCondition !== undefined || spec.reconcilePrecondition !== undefined;
}

function selectedName(selector = ""): string | undefined {
  return /(?:^|,)metadata\.name==?([^,=!]+)(?:,|$)/.exec(selector)?.[1];
}
