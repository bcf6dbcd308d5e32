import { quote, type Diagnostic } from "../../../diagnostic.js";
import type { WorkflowSpec } from "../../../input/workflow-spec.js";
import type { ResolvedController, ResolvedProject } from "../../build/resolved-project.js";
import { EXTERNAL, type ProjectMemory, type RememberedDependent, type StubWitness } from "../../project-memory.js";
import { goneControllers, type GoneController } from "./unhandled-rename.js";
import { describePlace, isSamePlace, isSeenBy, placeOf, placeOfRemembered } from "./dependent-place.js";

const RULE = { severity: "error", rule: "unstated-removal" } as const;

/**
 * Finds dependents of the last generation that left the spec, of which nothing says what becomes of their objects. A dependent that has
 * another kind now, is elsewhere, or has another selector, has left objects behind as well.
 */
export function checkUnstatedRemoval(project: ResolvedProject): Diagnostic[] {
  const { controllers, memory } = project;
  const written = memory.dependents.filter(({ isReadOnly }) => isReadOnly !== true);
  // A controller that may have another name now is reported as such.
  const gone = goneControllers(project).filter(
    ({ successor, dependents }) => successor === undefined && dependents.length > 0,
  );
  return [
    ...gone.map(controllerGone),
    ...controllers.flatMap((controller) => [
      ...written
        .filter((each) => each.controller === controller.spec.name)
        .flatMap((each) => checkRemembered(each, controller, memory)),
      ...memory.stubs
        .filter(({ folder }) => isCalled(controller.spec.name, folder))
        .flatMap((stub) => checkStub(stub, controller)),
    ]),
  ];
}

function checkRemembered(
  remembered: RememberedDependent,
  controller: ResolvedController,
  memory: ProjectMemory,
): Diagnostic[] {
  const { name } = remembered;
  const { spec, dependents, removed } = controller;
  const place = placeOfRemembered(remembered);
  const dependent = dependents.find((each) => each.name === name);
  // An unknown kind is reported as such.
  const now = dependent === undefined ? undefined : (placeOf(dependent) ?? place);
  if (now !== undefined && isSeenBy(now, place)) return [];
  if (now === undefined && spec.moved.some(({ from }) => from === name)) return [];
  const stated = removed.find((each) => each.name === name);
  if (stated === undefined) {
    const problem =
      now === undefined
        ? `dependent ${quote(name)} left the workflow`
        : `dependent ${quote(name)} was ${describePlace(place)}, and is ${describePlace(now)} now`;
    const message = `${problem}; nothing says what becomes of its ${place.kind === undefined ? "resources" : "objects"}`;
    const hint = hintFor(remembered, { controller, memory, mayMove: now === undefined });
    return [{ ...RULE, message, ...placeIn(controller, name), hint }];
  }
  const statedPlace = placeOf(stated);
  if (statedPlace === undefined || isSamePlace(place, statedPlace)) return [];
  const message = `${quote(name)} was ${describePlace(place)}; its objects are not found as ${describePlace(statedPlace)}`;
  return [{ ...RULE, message, ...spec.document.keyAt(stated.path), hint: `write: ${removedEntry(remembered)}` }];
}

function placeIn({ spec, dependents }: ResolvedController, name: string) {
  const own = dependents.find((each) => each.name === name);
  return spec.document.keyAt(own?.path ?? ["spec", "dependents"]);
}

interface HintOptions {
  readonly controller: ResolvedController;
  readonly memory: ProjectMemory;
  /** Whether the dependent has no successor under its own name. */
  readonly mayMove: boolean;
}

/** Returns the hint. A hint is printed with two blanks before each line, as the fields of `spec` have: so the lines can be pasted. */
function hintFor(remembered: RememberedDependent, { controller, memory, mayMove }: HintOptions): string {
  const { name } = remembered;
  const { spec, dependents } = controller;
  const isNew = (each: string) => !memory.dependents.some((old) => old.controller === spec.name && old.name === each);
  const place = placeOfRemembered(remembered);
  const successors = dependents.filter((each) => {
    const own = placeOf(each);
    return own !== undefined && isNew(each.name) && isSeenBy(own, place);
  });
  const [successor] = successors;
  const moved = pasted(
    spec,
    "moved",
    `- { from: ${name}, to: ${successors.length === 1 ? successor?.name : "NEW_NAME"} }`,
  );
  const removed = pasted(spec, "removed", removedEntry(remembered));
  const forRemoved =
    remembered.resource === EXTERNAL
      ? [
          "no operator deletes them without the dependent's own code. To delete them, keep the dependent with",
          `reconcilePrecondition: { when: "false" } until they are gone. To leave them where they are, ${removed}`,
        ]
      : [
          "if they are not wanted any more (ordered: the operator deletes them; garbageCollected: they stay until their primary goes;",
          `orphan: they lose their link to it), ${removed}`,
        ];
  return [...(mayMove ? [`if the dependent has another name now, ${moved}`] : []), ...forRemoved].join("\n");
}

/** Says where an entry is to be pasted: a field that the spec has already must not be there twice. */
function pasted({ document }: WorkflowSpec, field: "moved" | "removed", entry: string): string {
  const { spec } = document.value as { readonly spec: object };
  return field in spec ? `add to "${field}" of spec:\n  ${entry}` : `paste under spec:\n${field}:\n  ${entry}`;
}

/** Returns the line of `removed` that is to be pasted. */
function removedEntry({ name, resource, namespace, cluster, deletion }: RememberedDependent): string {
  const kind =
    typeof resource === "string"
      ? resource
      : `{ ${Object.entries(resource)
          .map(([field, value]) => `${field}: ${String(value)}`)
          .join(", ")} }`;
  const fields = [
    `resource: ${kind}`,
    ...(namespace === undefined ? [] : [`namespace: ${namespace}`]),
    ...(cluster === undefined ? [] : [`cluster: ${cluster}`]),
    `deletion: ${resource === EXTERNAL || deletion === "orphan" ? "orphan" : "ordered"}`,
  ];
  return `${name}: { ${fields.join(", ")} }`;
}

function controllerGone({ name, dependents }: GoneController): Diagnostic {
  const names = dependents.map((each) => each.name).join(", ");
  return {
    ...RULE,
    message: `controller ${quote(name)} is gone; nothing says what becomes of the objects of its dependents: ${names}`,
    hint: [
      "if they are not wanted any more, keep the controller until they are gone, with nothing but its primary and these fields under spec:",
      "dependents: {}",
      "removed:",
      ...dependents.map((each) => `  ${removedEntry(each)}`),
      `if they may stay, run once: gen-operator generate --forget ${name}`,
    ].join("\n"),
  };
}

// Without a manifest only the file itself says that there was such a dependent, and not of which kind.
function checkStub({ name, file }: StubWitness, controller: ResolvedController): Diagnostic[] {
  const { spec, dependents, removed } = controller;
  const known = [
    ...dependents.map((each) => each.name),
    ...removed.map((each) => each.name),
    ...spec.moved.map(({ from }) => from),
  ];
  if (known.some((each) => isCalled(each, name))) return [];
  const message = `${file} was written for a dependent that the workflow does not have, and src/generated has no record of its kind`;
  return [
    {
      ...RULE,
      message,
      ...spec.document.keyAt(["spec", "dependents"]),
      hint: [
        "restore src/generated/.gen-operator.json from version control, list the dependent under moved or removed,",
        "or delete the file if none of its objects runs",
      ].join("\n"),
    },
  ];
}

// Files have names in kebab-case.
function isCalled(name: string, file: string): boolean {
  const letters = (text: string) => text.replaceAll("-", "").toLowerCase();
  return letters(name) === letters(file);
}
