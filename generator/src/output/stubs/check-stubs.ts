import { positionAfter, quote, type Diagnostic } from "../../diagnostic.js";
import { isKubernetes, isReadOnly, ownOperationsOf, type ProjectModel } from "../../model/project-model.js";
import { controllerNamesOf, dependentNamesOf, sourceNamesOf } from "../controller-names.js";
import { isFetched } from "../controller/dependent-types.js";
import { nameResources } from "../resource/resource-name.js";
import { reconcilerPathOf } from "./reconciler-stub.js";
import type { NamedController } from "./stub.js";

/** A file of the user's, with its text. */
interface UserFile {
  readonly path: string;
  readonly text: string;
}

/** A constant that a file of the user's has to export. */
interface StubConstant {
  readonly path: string;
  readonly name: "external" | "operations" | "source" | "reconciler";
  readonly type: string;
  /** Whose functions these are: `dependent "account"`. */
  readonly owner: string;
  readonly members: readonly string[];
}

/** Reports files of the user's without the constant that the wiring takes the functions from. */
export function checkStubs(model: ProjectModel, code: readonly UserFile[]): Diagnostic[] {
  const names = nameResources(model);
  const files = new Map(code.map((file) => [file.path, file]));
  return model.controllers
    .flatMap((controller) =>
      constantsOf({ controller, names: controllerNamesOf(controller, names, model.controllers) }),
    )
    .flatMap((constant) => {
      const file = files.get(constant.path);
      return file === undefined ? [] : checkFile(file, constant);
    });
}

function constantsOf({ controller, names }: Omit<NamedController, "hasReconciler">): StubConstant[] {
  const { dependents, eventSources } = controller;
  const ofDependents = dependents.flatMap((dependent): StubConstant[] => {
    const types = dependentNamesOf(dependent);
    const path = `src/${names.folder}/dependents/${types.file}.ts`;
    const owner = `dependent ${quote(dependent.name)}`;
    if (isKubernetes(dependent)) {
      const members = ownOperationsOf(dependent);
      return members.length === 0 ? [] : [{ path, name: "operations", type: types.operations, owner, members }];
    }
    const { isSelected, keptType, capabilities } = dependent.external;
    const members = [
      ...(isFetched(dependent) ? ["fetch"] : []),
      "idOf",
      ...(isSelected === true ? ["isOwn"] : []),
      ...(keptType === undefined ? [] : ["stateOf"]),
      ...(isReadOnly(dependent) ? [] : ["desired"]),
      ...capabilities,
    ];
    return [{ path, name: "external", type: types.external, owner, members }];
  });
  const ofSources = eventSources.flatMap((source): StubConstant[] => {
    if (source.kind === "informer") return [];
    const { file, functions: type } = sourceNamesOf(source);
    const members = source.kind === "inbound" ? ["idOf"] : ["fetch", "idOf"];
    const path = `src/${names.folder}/event-sources/${file}.ts`;
    return [{ path, name: "source", type, owner: `event source ${quote(source.name)}`, members }];
  });
  const owner = `controller ${quote(controller.name)}`;
  const reconciler = { path: reconcilerPathOf(names), name: "reconciler", type: names.reconciler, owner } as const;
  return [...ofDependents, ...ofSources, { ...reconciler, members: ["reconcile"] }];
}

// `delete` is no name of a constant.
const FORMER_NAMES: { readonly [member: string]: string } = { delete: "remove" };

function checkFile({ path, text }: UserFile, { name, type, owner, members }: StubConstant): Diagnostic[] {
  const exported = exportsOf(text);
  if (exported === undefined || exported.has(name)) return [];
  const alone = members.filter((member) => exported.has(FORMER_NAMES[member] ?? member));
  const fields = members.map((member) => {
    if (!alone.includes(member)) return `${member}: …`;
    const former = FORMER_NAMES[member];
    return former === undefined ? member : `${member}: ${former}`;
  });
  const constant = `export const ${name}: ${type} = { ${fields.join(", ")} };`;
  const offsets = alone.map((member) => exported.get(FORMER_NAMES[member] ?? member) ?? 0);
  const [first] = alone;
  return [
    {
      severity: "error",
      rule: "stub-constant",
      message:
        first === undefined
          ? `the file does not export ${quote(name)}, the constant with the functions of the ${owner}`
          : `the functions of the ${owner} are exported one by one; they have to be one constant, ${quote(name)}`,
      position: positionAfter(path, text.slice(0, offsets.length === 0 ? 0 : Math.min(...offsets))),
      hint:
        first === undefined
          ? `write: ${constant}`
          : `take away their "export", give them types such as ${type}["${first}"], and add: ${constant}`,
    },
  ];
}

/** Returns the names of the values that a file exports, with their offsets; undefined if the text alone does not tell. */
function exportsOf(text: string): ReadonlyMap<string, number> | undefined {
  if (/^\s*export\s*(?:\*(?!\s*as\b)|(?:const|let|var)\s*[{[])/m.test(text)) return undefined;
  const names = new Map<string, number>();
  for (const match of text.matchAll(/^export\s+(?:async\s+)?(?:const|let|var|function\*?)\s+([\w$]+)/gm))
    names.set(match[1] ?? "", match.index + match[0].length - (match[1] ?? "").length);
  for (const match of text.matchAll(/^export\s*\{([^}]*)\}/gm))
    for (const each of (match[1] ?? "").split(","))
      names.set(
        each
          .split(/\s+as\s+/)
          .at(-1)
          ?.trim() ?? "",
        match.index,
      );
  return names;
}
