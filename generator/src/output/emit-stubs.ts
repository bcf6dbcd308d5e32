import type { ConditionModel, ControllerModel, DependentModel, ResourceModel } from "../model/project-model.js";
import { dependentNamesOf, nameOrThrow, type DependentNames } from "./controller-names.js";
import { conditionsOf } from "./conditions-of.js";
import { eventSourceStubs, filtersStub } from "./event-source-stubs.js";
import { minimalFieldsOf } from "./minimal-value.js";
import type { OutputFile } from "./output-file.js";
import { printLine } from "./print-value.js";
import { buildRuntimeSchema } from "./runtime-schema.js";
import { runtimeModule } from "./runtime-symbols.js";
import type { NamedController, Stub } from "./stub.js";
import { listTemplates, renderTemplate } from "./template.js";

/** Emits the files that the user fills in; they are written only where there is none yet. */
export async function emitStubs(controllers: readonly NamedController[]): Promise<OutputFile[]> {
  const { format } = await import("prettier");
  const files = await Promise.all(controllers.map(emitControllerStubs));
  const main = { path: "src/main.ts", text: await renderTemplate("stubs/main.ts", {}) };
  return Promise.all(
    [...files.flat(), ...(controllers.length > 0 ? [main] : [])].map(async ({ path, text }) => ({
      path,
      owner: "user" as const,
      content: await format(text, { parser: "babel-ts", printWidth: 120 }),
    })),
  );
}

async function emitControllerStubs(named: NamedController): Promise<Stub[]> {
  const { controller, names } = named;
  const folder = `src/${names.folder}`;
  const kinds = await listTemplates("stubs/kinds");
  return [
    ...(await Promise.all(controller.dependents.map((dependent) => dependentStub(dependent, named, kinds)))),
    ...(await conditionsStub(named)),
    ...(await filtersStub(named)),
    ...(await eventSourceStubs(named)),
    {
      path: `${folder}/reconciler.ts`,
      text: await renderTemplate("stubs/reconciler.ts", { Primary: names.primary, controller: names.folder }),
    },
    ...(await testStub(named)),
  ];
}

async function dependentStub(
  dependent: DependentModel,
  { controller, names }: NamedController,
  kinds: ReadonlySet<string>,
): Promise<Stub> {
  const { group, version, kind } = dependent.resource;
  const types = dependentNamesOf(dependent);
  const template = `${group === "" ? "core" : group}.${version}.${kind}.ts`;
  const required = kinds.has(template) ? {} : requiredFieldsOf(dependent.resource);
  const replacements = {
    Dependent: types.arguments.slice(0, -"Arguments".length),
    Primary: names.primary,
    Resource: nameOrThrow(names.resources, dependent.resource).localName,
    controller: names.folder,
    objectName: objectNameOf(dependent, controller),
    required: required === undefined ? "(() => { throw new Error() })()" : printLine(required),
  };
  const text = await renderTemplate(
    kinds.has(template) ? `stubs/kinds/${template}` : "stubs/dependent.ts",
    replacements,
  );
  return { path: `src/${names.folder}/dependents/${types.file}.ts`, text: withRequired(text, dependent, required) };
}

// Text, not a spread: the user is to fill it in.
function withRequired(text: string, { name, resource }: DependentModel, required: object | undefined): string {
  if (required !== undefined)
    return text.replace(/\.\.\.\{(.*)\},\n/, (_, fields: string) =>
      fields.trim() === "" ? "" : `${fields.trim()},\n`,
    );
  const message = `fill in what the ${resource.kind} "${name}" has to be`;
  return text
    .replace(/return \{[^]*?\n {2}\};/, `throw new Error(${JSON.stringify(message)});`)
    .replace("desired({ primary }:", "desired(_: ");
}

function requiredFieldsOf(resource: ResourceModel): object | undefined {
  const fields = minimalFieldsOf(buildRuntimeSchema(resource));
  if (fields === undefined) return undefined;
  const { apiVersion: _apiVersion, kind: _kind, metadata: _metadata, ...rest } = fields;
  if (resource.hasStatusSubresource) delete rest["status"];
  return rest;
}

// Two dependents of one kind must not be one object.
function objectNameOf({ name, resource }: DependentModel, { dependents }: ControllerModel): string {
  const isAlone = dependents.filter((other) => other.resource === resource).length === 1;
  return isAlone ? "primary.metadata.name" : `\`\${primary.metadata.name}-${dependentNamesOf({ name }).file}\``;
}

async function conditionsStub({ controller, names }: NamedController): Promise<Stub[]> {
  const used = new Map<string, { types: DependentNames; doc: string }[]>();
  for (const dependent of controller.dependents)
    for (const [kind, condition] of conditionsOf(dependent)) {
      if (!isFunction(condition)) continue;
      const use = { types: dependentNamesOf(dependent), doc: `Decides the ${kind} of ${dependent.name}.` };
      used.set(condition.name, [...(used.get(condition.name) ?? []), use]);
    }
  if (used.size === 0) return [];
  const imports = new Set<string>();
  const declarations = [...used].map(([condition, uses]) => {
    const dependents = new Set(uses.map(({ types }) => types.name));
    const own = uses[0]?.types.condition ?? "";
    // A function that serves several dependents can rely on none of the others being there.
    const isShared = dependents.size > 1;
    for (const name of isShared ? [names.primary, names.dependents] : [own]) imports.add(name);
    const type = isShared ? `Condition<${names.primary}, ${names.dependents}>` : own;
    return { replacements: { condition, Condition: type, doc: uses.map(({ doc }) => doc).join(" ") }, isShared };
  });
  const texts = await Promise.all(
    declarations.map(({ replacements }) => renderTemplate("stubs/condition.ts", replacements)),
  );
  const head = [
    ...(declarations.some(({ isShared }) => isShared) ? [`import type { Condition } from "${runtimeModule}";`] : []),
    `import type { ${[...imports].sort().join(", ")} } from "../generated/${names.folder}/types.js";`,
  ];
  return [{ path: `src/${names.folder}/conditions.ts`, text: [head.join("\n"), ...texts].join("\n\n") }];
}

function isFunction(condition: ConditionModel): condition is ConditionModel & { kind: "function" } {
  return condition.kind === "function";
}

// The first dependent that needs nothing but the primary shows that the operator works.
async function testStub({ controller, names }: NamedController): Promise<Stub[]> {
  const { primary, dependents } = controller;
  const dependent = dependents.find(({ dependsOn, conditions }) => {
    return dependsOn.length === 0 && !conditions.reconcilePrecondition && !conditions.activationCondition;
  });
  if (dependent === undefined) return [];
  const resource = nameOrThrow(names.resources, dependent.resource).exportName;
  const primaryClass = nameOrThrow(names.resources, primary).exportName;
  const sample = "example";
  const isAlone = objectNameOf(dependent, controller) === "primary.metadata.name";
  const name = isAlone ? sample : `${sample}-${dependentNamesOf(dependent).file}`;
  const namespace = dependent.resource.scope === "Cluster" ? undefined : (dependent.namespace ?? "default");
  const metadata = { name: sample, ...(primary.scope === "Cluster" ? {} : { namespace: "default" }) };
  const crds = [primary, ...dependents.map(({ resource }) => resource)].flatMap(({ crdFile }) => crdFile ?? []);
  const text = await renderTemplate("stubs/controller.test.ts", {
    Primary: primaryClass,
    Resource: resource,
    Resources: [...new Set([primaryClass, resource])].sort().join(", "),
    controllerName: names.controller,
    crds: JSON.stringify([...new Set(crds)]),
    dependent:
      dependent.name === "server" || dependent.name === "operator" ? `${dependent.name}Object` : dependent.name,
    name: JSON.stringify(name),
    primary: `${primaryClass}.create(${printLine({ metadata, ...(requiredFieldsOf(primary) ?? {}) })})`,
    ref: printLine({ name, ...(namespace === undefined ? {} : { namespace }) }),
  });
  return [{ path: `test/${names.folder}.test.ts`, text }];
}
