import type ts from "typescript";
import { formatPosition, quote, type Diagnostic } from "../../diagnostic.js";
import { loadLibrary } from "../../model/expression/library.js";
import { isKubernetes, type ControllerModel, type KubernetesDependentModel } from "../../model/project-model.js";
import { dependentNamesOf } from "../controller-names.js";
import { OWN_NAMESPACE } from "./chosen-namespaces.js";
import { functionOf, type FunctionNode } from "./code/functions.js";
import { plainTextOf } from "./code/plain-text.js";
import { fieldOf, objectsReturnedBy } from "./code/returned-objects.js";
import type { SourceProgram } from "./code/source-program.js";

const compiler = loadLibrary("typescript");

interface Code {
  readonly controller: ControllerModel;
  readonly folder: string;
  readonly program: SourceProgram;
}

/** A part of what a function names its object by, where it stands; without a text if it is more than texts and fields of the primary. */
interface NamePart {
  readonly node: ts.Node;
  readonly text: string | undefined;
}

/** What a dependent names its object by. */
interface NamedDependent {
  readonly code: Code;
  readonly dependent: KubernetesDependentModel;
  readonly name: NamePart;
  /** Absent if the function leaves it to the runtime. */
  readonly namespace?: NamePart;
}

/**
 * Finds dependents whose functions name the same object, and namespaces that cannot be, where that is plain to see: the name is made of texts
 * and fields of the primary alone. All else is left to the operator, which refuses to write it.
 */
export function checkObjectNames(controllers: readonly Code[]): Diagnostic[] {
  const named = controllers.flatMap((code) =>
    code.controller.dependents.filter(isKubernetes).flatMap((dependent) => nameOf(dependent, code) ?? []),
  );
  return [...named.flatMap(checkNamespace), ...objectsOfOneName(named)];
}

function objectsOfOneName(named: readonly NamedDependent[]): Diagnostic[] {
  const known = new Map<string, NamedDependent[]>();
  return named.flatMap((each): Diagnostic[] => {
    const key = keyOf(each);
    if (key === undefined) return [];
    const others = known.get(key) ?? [];
    known.set(key, [...others, each]);
    // Two that have conditions may take turns.
    const other = others.find(({ dependent }) => !isConditional(dependent) || !isConditional(each.dependent));
    if (other === undefined) return [];
    const { code, dependent, name } = each;
    const place = formatPosition(other.code.program.positionOf(other.name.node));
    const object = `${dependent.resource.kind} ${displayed(name.text ?? "")}`;
    return [
      {
        severity: "error",
        rule: "same-object",
        message: `dependents ${quote(dependent.name)} and ${quote(other.dependent.name)} would write the same object: the ${object}, first at ${place}`,
        position: code.program.positionOf(name.node),
        hint: "give it another name, or make one dependent of the two",
      },
    ];
  });
}

/** Returns a key that all names of one object share, as far as the code shows it. */
function keyOf({ code: { controller }, dependent, name, namespace }: NamedDependent): string | undefined {
  const { resource, cluster = "", bulk } = dependent;
  const stated = namespace === undefined ? OWN_NAMESPACE : namespace.text;
  const place = resource.scope === "Cluster" ? "" : (dependent.namespace ?? stated);
  if (bulk !== undefined || name.text === undefined || place === undefined) return undefined;
  const { primary, settings, filters } = controller;
  // Controllers that limit what they watch may share a kind without sharing an object.
  const { labelSelector, fieldSelector, namespaces } = settings;
  const isLimited = [labelSelector, fieldSelector, namespaces].some((limit) => limit !== undefined);
  const isApart = isLimited || Object.keys(filters).length > 0;
  const ofWhom = [primary.group, primary.kind, isApart ? controller.name : ""];
  return JSON.stringify([...ofWhom, resource.group, resource.kind, cluster, place, name.text]);
}

function isConditional({ conditions }: KubernetesDependentModel): boolean {
  return conditions.activationCondition !== undefined || conditions.reconcilePrecondition !== undefined;
}

/** Checks a namespace that is stated as a text against the owner of the object and the watched namespaces. */
function checkNamespace({ code, dependent, namespace }: NamedDependent): Diagnostic[] {
  const { name, resource, deletion } = dependent;
  const { primary, settings } = code.controller;
  const text = namespace?.text;
  if (namespace === undefined || text === undefined || text.includes("${") || resource.scope === "Cluster") return [];
  const position = code.program.positionOf(namespace.node);
  const { namespaces } = settings;
  const watched = Array.isArray(namespaces) ? (namespaces as readonly string[]) : undefined;
  const isOnlyOne = watched?.length === 1 && watched[0] === text;
  if (deletion === "garbageCollected" && primary.scope === "Namespaced" && !isOnlyOne)
    return [
      {
        severity: "error",
        rule: "owner-namespace",
        message: `${quote(name)} cannot be owned by a ${primary.kind}: it is in the namespace ${quote(text)}, and the primary may be in another`,
        position,
        hint: "state deletion: ordered in the spec, and the operator deletes it before the primary; or deletion: orphan, and it stays",
      },
    ];
  const isSeen = watched === undefined || watched.includes(text);
  if (isSeen || [dependent.namespace, dependent.eventSource, dependent.cluster].some((each) => each !== undefined))
    return [];
  return [
    {
      severity: "error",
      rule: "dependent-namespace",
      message: `${quote(name)} would be in the namespace ${quote(text)}, which ${quote(code.controller.name)} does not watch`,
      position,
      hint: `state namespace: ${text} in the spec of the dependent, or add it to the namespaces of the controller`,
    },
  ];
}

/** Returns what a dependent names its object by; undefined unless its function returns one object, and says so in plain words. */
function nameOf(dependent: KubernetesDependentModel, code: Code): NamedDependent | undefined {
  const { program, folder } = code;
  if (dependent.mode === "readOnly") return undefined;
  const file = program.fileAt(`src/${folder}/dependents/${dependentNamesOf(dependent).file}.ts`);
  const desired = file === undefined ? undefined : functionOf(program.exportOf(file, "desired"), program);
  const [object, second] = desired === undefined ? [] : objectsReturnedBy(desired);
  if (desired === undefined || object === undefined || second !== undefined) return undefined;
  const metadata = fieldOf(object, "metadata");
  if (metadata === undefined || !compiler.isPropertyAssignment(metadata)) return undefined;
  const { initializer } = metadata;
  if (!compiler.isObjectLiteralExpression(initializer)) return undefined;
  if (initializer.properties.some((property) => compiler.isSpreadAssignment(property))) return undefined;
  const name = partIn(initializer, "name", { desired, program });
  const namespace = partIn(initializer, "namespace", { desired, program });
  if (name === undefined) return undefined;
  return { code, dependent, name, ...(namespace === undefined ? {} : { namespace }) };
}

function partIn(
  metadata: ts.ObjectLiteralExpression,
  field: string,
  { desired, program }: { readonly desired: FunctionNode; readonly program: SourceProgram },
): NamePart | undefined {
  const property = fieldOf(metadata, field);
  if (property === undefined) return undefined;
  // `{ name }` stands for the constant of this name.
  const node = compiler.isPropertyAssignment(property) ? property.initializer : (property.name as ts.Identifier);
  return { node, text: plainTextOf(node, { function: desired, program }) };
}

function displayed(template: string): string {
  return template.includes("${") ? `\`${template}\`` : quote(template);
}
