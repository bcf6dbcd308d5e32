import { loadLibrary } from "../../model/expression/library.js";
import { isKubernetes, type ConditionModel } from "../../model/project-model.js";
import { reservedWords } from "../../model/reserved-words.js";
import { conditionsOf } from "../conditions/conditions-of.js";
import { conditionTypesOf } from "../conditions/condition-types.js";
import { dependentNamesOf, nameOrThrow } from "../controller-names.js";
import { dependentStubs, matchersStub, objectNameOf, requiredFieldsOf } from "./dependent-stubs.js";
import { eventSourceStubs, filtersStub, indexesStub } from "./event-source-stubs.js";
import { kebabCase } from "../naming.js";
import { presentFile, type OutputFile } from "../files/output-file.js";
import { printLine } from "../print/print-value.js";
import { runtimeModule } from "../runtime-symbols.js";
import { reconcilerStub } from "./reconciler-stub.js";
import type { NamedController, Stub } from "./stub.js";
import { renderTemplate } from "../project/template.js";

/** Emits the files that the user fills in; only those that are missing have a text, for no other is ever written. */
export async function emitStubs(
  controllers: readonly NamedController[],
  isMissing: (path: string) => boolean,
): Promise<OutputFile[]> {
  const files = await Promise.all(controllers.map(emitControllerStubs));
  const main = { path: "src/main.ts", render: () => renderMain(controllers) };
  const stubs = [...files.flat(), ...(controllers.length > 0 ? [main] : [])];
  return Promise.all(stubs.map(async (stub) => (isMissing(stub.path) ? formatStub(stub) : presentFile(stub.path))));
}

async function formatStub({ path, render }: Stub): Promise<OutputFile> {
  const { format } = loadLibrary("prettier/standalone");
  const plugins = [loadLibrary("prettier/plugins/babel"), loadLibrary("prettier/plugins/estree")];
  const content = await format(await render(), { parser: "babel-ts", plugins, printWidth: 120 });
  return { path, owner: "user", content };
}

async function renderMain(controllers: readonly NamedController[]): Promise<string> {
  const dependents = controllers.flatMap(({ controller: { dependents: present, removed = [] } }) => [
    ...present.filter(isKubernetes),
    ...removed,
  ]);
  const clusters = new Set(dependents.flatMap(({ cluster }) => cluster ?? []));
  if (clusters.size === 0) return renderTemplate("stubs/main.ts", {});
  const fields = [...clusters].map((name) => {
    const variable = `${kebabCase(name).toUpperCase().replaceAll("-", "_")}_KUBECONFIG`;
    return `${name}: await loadConnection({ kubeconfig: process.env.${variable} ?? "" })`;
  });
  return renderTemplate("stubs/main-with-clusters.ts", { clusters: `{ ${fields.join(", ")} }` });
}

async function emitControllerStubs(named: NamedController): Promise<Stub[]> {
  return [
    ...(await dependentStubs(named)),
    ...(await conditionsStub(named)),
    ...(await matchersStub(named)),
    ...(await filtersStub(named)),
    ...(await indexesStub(named)),
    ...eventSourceStubs(named),
    ...reconcilerStub(named),
    ...testStub(named),
  ];
}

async function conditionsStub({ controller, names }: NamedController): Promise<Stub[]> {
  const file = `src/${names.folder}/conditions.ts`;
  const used = new Map<string, { name: string; type: string; doc: string }[]>();
  for (const dependent of controller.dependents)
    for (const [kind, condition] of conditionsOf(dependent)) {
      if (!isFunction(condition)) continue;
      const doc =
        kind === "existing"
          ? `Decides whether ${dependent.name} adopts the object that was found.`
          : `Decides the ${kind} of ${dependent.name}.`;
      const use = { name: dependent.name, type: conditionTypesOf(dependent, kind).condition, doc };
      used.set(condition.name, [...(used.get(condition.name) ?? []), use]);
    }
  if (used.size === 0) return [];
  const imports = new Set<string>();
  const declarations = [...used].map(([condition, uses]) => {
    const dependents = new Set(uses.map(({ name }) => name));
    // A function that serves several conditions can rely on no more than each of them sees.
    const types = new Set(uses.map(({ type }) => type));
    const isShared = dependents.size > 1 || types.size > 1;
    const [own = ""] = types;
    for (const name of isShared ? [names.primary, names.dependents] : [own]) imports.add(name);
    const type = isShared ? `Condition<${names.primary}, ${names.dependents}>` : own;
    const doc = uses.map((use) => use.doc).join(" ");
    return { replacements: { condition, Condition: type, doc, file }, isShared };
  });
  const texts = await Promise.all(
    declarations.map(({ replacements }) => renderTemplate("stubs/condition.ts", replacements)),
  );
  const head = [
    ...(declarations.some(({ isShared }) => isShared) ? [`import type { Condition } from "${runtimeModule}";`] : []),
    `import type { ${[...imports].sort().join(", ")} } from "../generated/${names.folder}/types.js";`,
  ];
  return [{ path: file, render: async () => [head.join("\n"), ...texts].join("\n\n") }];
}

function isFunction(condition: ConditionModel): condition is ConditionModel & { kind: "function" } {
  return condition.kind === "function";
}

// The first dependent that needs nothing but the primary, and is in the cluster of the operator, shows that the operator works.
function testStub({ controller, names }: NamedController): Stub[] {
  const { primary, dependents } = controller;
  const objects = dependents.filter(isKubernetes);
  const dependent = objects.find(({ dependsOn, conditions, ...rest }) => {
    const isPlain = rest.bulk === undefined && rest.mode !== "readOnly" && rest.resource.isUntyped !== true;
    const isUnconditional = !conditions.reconcilePrecondition && !conditions.activationCondition;
    return isPlain && rest.cluster === undefined && dependsOn.length === 0 && isUnconditional;
  });
  if (dependent === undefined || controller.workflow?.invocation === "explicit") return [];
  const resource = nameOrThrow(names.resources, dependent.resource).exportName;
  const primaryClass = nameOrThrow(names.resources, primary).exportName;
  const sample = "example";
  const isAlone = objectNameOf(dependent, controller) === "primary.metadata.name";
  const name = isAlone ? sample : `${sample}-${dependentNamesOf(dependent).file}`;
  const namespace = dependent.resource.scope === "Cluster" ? undefined : (dependent.namespace ?? "default");
  const metadata = { name: sample, ...(primary.scope === "Cluster" ? {} : { namespace: "default" }) };
  const crds = [primary, ...objects.map((each) => each.resource)].flatMap(({ crdFile }) => crdFile ?? []);
  const render = () =>
    renderTemplate("stubs/controller.test.ts", {
      Primary: primaryClass,
      Resource: resource,
      Resources: [...new Set([primaryClass, resource])].sort().join(", "),
      controllerName: names.controller,
      crds: JSON.stringify([...new Set(crds)]),
      dependent: dependent.name,
      live: variableFor(dependent.name, [names.controller]),
      name: JSON.stringify(name),
      primary: `${primaryClass}.create(${printLine({ metadata, ...(requiredFieldsOf(primary) ?? {}) })})`,
      ref: printLine({ name, ...(namespace === undefined ? {} : { namespace }) }),
    });
  return [{ path: `test/${names.folder}.test.ts`, render }];
}

/** What the test of a controller calls things besides the object that it looks at. */
const IN_TEST = ["assert", "createOperator", "operator", "server", "startApiServer", "test", "undefined", "waitFor"];

// Any name will do for a dependent, but not for a variable.
function variableFor(dependent: string, others: readonly string[]): string {
  const isTaken = reservedWords.has(dependent) || [...IN_TEST, ...others].includes(dependent);
  return isTaken ? `${dependent}Object` : dependent;
}
