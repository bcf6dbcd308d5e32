// The names by which operators are observed and selected, for example in dashboards, alerts, policies, and kubectl commands.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type ts from "typescript";
import { METRICS, type MetricDefinition } from "#runtime/operate/metrics.js";
import { repositoryRoot } from "../repository.js";
import { OPEN, type SourceProgram } from "./source-program.js";

const PACKAGES = ["runtime", "generator", "apiserver", "schema"];

/** Returns the labels, annotations, finalizers, and other names of objects in a cluster, from all strings of the sources and templates. */
export function objectNamesReport(program: SourceProgram): string {
  const literals = [...PACKAGES.flatMap((folder) => textsIn(folder, program)), ...templateTexts()];
  const find = (pattern: RegExp, texts = literals) => unique(texts.flatMap((text) => text.match(pattern) ?? []));
  const qualified = (texts: readonly string[]) => find(/[\w.…-]*gen-operator\.dev\/(?:[\w.…-]*[\w…-])?/g, [...texts]);
  return sectionsOf({
    // Messages and templates repeat names that the runtime writes.
    "names of gen-operator.dev in the runtime: … is known only while the operator runs": qualified(
      textsIn("runtime", program),
    ),
    "names of gen-operator.dev in the other packages": qualified(literals.slice(textsIn("runtime", program).length)),
    "finalizers: … is the plural and the group of the kind": find(/^…[\w.…-]*\/[a-z-]*finalizer$/g),
    "names of objects, field managers and the like": find(/^gen-operator(?:-[\w…]+)+$/g),
    "annotations for the simulated controllers": find(/^simulate\/[\w-]+$/g),
    "field managers besides that of the controller": fieldManagersIn(program),
  });
}

/** Returns the reasons, actions, and types of Events, the types and reasons of conditions, and the reasons of errors that the runtime creates. */
export function reasonsReport(program: SourceProgram): string {
  const { compiler, checker } = program;
  const [events, conditions, errors] = [new Set<string>(), new Set<string>(), new Set<string>()];
  const types = new Set<string>();
  const texts = (object: ts.ObjectLiteralExpression, name: string, absent: string) => {
    const value = program.memberOf(object, name);
    return value === undefined ? [absent] : program.textsOf(value);
  };
  program.forEachNode((node) => {
    if (!compiler.isObjectLiteralExpression(node) || program.memberOf(node, "reason") === undefined) return;
    const type = checker.getContextualType(node);
    const has = (...names: readonly string[]) => names.every((name) => type?.getProperty(name) !== undefined);
    const reasons = texts(node, "reason", OPEN);
    if (has("reason", "note", "action")) {
      for (const reason of reasons)
        for (const action of texts(node, "action", "(default)"))
          for (const kind of texts(node, "type", "(default)")) events.add(`${reason}: ${kind}, action ${action}`);
    } else if (has("type", "status", "reason", "lastTransitionTime")) {
      for (const each of reasons) conditions.add(each);
      // The number of unknown parts of a type depends on how it is concatenated.
      for (const each of texts(node, "type", OPEN)) types.add(each.replace(/…{2,}/g, "……"));
    } else if (has("code", "reason", "message", "details")) for (const each of reasons) errors.add(each);
  });
  return sectionsOf({
    "Events: reason, type and action; the type is Normal and the action Reconcile by default": [...events].sort(),
    "conditions: types; … is the prefix of the controller, …… with the name of the dependent": [...types].sort(),
    "conditions: reasons": [...conditions].sort(),
    "errors that are made in place of the API server's: reasons": [...errors].sort(),
  });
}

/** Returns the metrics with their types, labels, and buckets, the spans with their attributes, and the diagnostics channels. */
export function observedReport(program: SourceProgram): string {
  const { compiler } = program;
  const [spans, attributes, channels] = [new Set<string>(), new Set<string>(), new Set<string>()];
  const add = (found: Set<string>, value: ts.Expression | undefined) => {
    if (value !== undefined) for (const text of program.textsOf(value)) found.add(text);
  };
  for (const { arguments: args } of program.callsOf("getTracer")) add(spans, args[0]);
  for (const { arguments: args } of program.callsOf("startSpan")) {
    add(spans, args[0]);
    const options = args[1];
    if (options === undefined || !compiler.isObjectLiteralExpression(options)) continue;
    const value = program.memberOf(options, "attributes");
    for (const key of value === undefined ? [] : program.keysOf(value, () => attributes.add(OPEN))) attributes.add(key);
  }
  for (const { arguments: args } of program.callsOf("setAttribute")) add(attributes, args[0]);
  for (const { expression, arguments: args } of program.callsOf("channel"))
    if (compiler.isIdentifier(expression)) add(channels, args[0]);
  const messages = program
    .callsOf("publish")
    .map(({ arguments: [message] }) => (message === undefined ? [] : program.keysOf(message, () => {})))
    .map((keys) => [...new Set(keys)].sort().join(", "));
  return sectionsOf({
    "metrics of an operator: type, labels and buckets": metricLines(),
    "metrics of the process: which of them there are depends on the platform": unique(
      textsIn("runtime", program).filter((text) => /^(?:process|nodejs)_[a-z_]+$/.test(text)),
    ),
    "spans and their tracer": [...spans].sort(),
    "attributes of spans": [...attributes].sort(),
    "diagnostics channels": [...channels].sort(),
    "fields of the messages of the channels": messages.sort(),
  });
}

function metricLines(): string[] {
  return Object.entries<MetricDefinition>(METRICS)
    .map(([name, { type, labels, buckets }]) =>
      [name, `${type} {${labels.join(", ")}}`, ...(buckets === undefined ? [] : [`[${buckets.join(", ")}]`])].join(" "),
    )
    .sort();
}

/** Returns the environment variables that the packages read, and the paths that an operator serves. */
export function processReport(program: SourceProgram): string {
  const variables = PACKAGES.flatMap((folder) => variablesIn(filesOf(folder, program), program));
  const paths = textsIn("runtime", program).flatMap(
    (text) => text.match(/(?<![\w.])\/(?:[a-z]+z|metrics|debug(?:\/[a-zA-Z-]+)+)(?![\w/-])/g) ?? [],
  );
  return sectionsOf({
    "variables of the environment that are read by their names; those of the settings are in settings.txt":
      unique(variables),
    "paths that an operator serves": unique(paths),
  });
}

/** Returns the names of environment variables: `env["NAME"]`, `env.NAME`, `{ NAME } = env`, and those that callers pass. */
function variablesIn(files: readonly ts.SourceFile[], program: SourceProgram): string[] {
  const { compiler } = program;
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    if (compiler.isVariableDeclaration(node) && compiler.isObjectBindingPattern(node.name)) {
      if (/(?:^|\.)env$/.test(node.initializer?.getText() ?? ""))
        found.push(...node.name.elements.map(({ propertyName, name }) => (propertyName ?? name).getText()));
    } else if (compiler.isElementAccessExpression(node) || compiler.isPropertyAccessExpression(node)) {
      if (!/(?:^|\.)env$/.test(node.expression.getText())) return compiler.forEachChild(node, visit);
      if (compiler.isPropertyAccessExpression(node)) found.push(node.name.text);
      else if (compiler.isStringLiteralLike(node.argumentExpression)) found.push(node.argumentExpression.text);
      else if (program.files.includes(node.getSourceFile())) found.push(...program.textsOf(node.argumentExpression));
    }
    compiler.forEachChild(node, visit);
  };
  for (const file of files) if (/\benv\b/.test(file.text)) visit(file);
  return found.filter((name) => /^[A-Z_]+$/.test(name));
}

function fieldManagersIn(program: SourceProgram): string[] {
  const { compiler } = program;
  const found = new Set<string>();
  program.forEachNode((node) => {
    if (!compiler.isObjectLiteralExpression(node)) return;
    for (const name of ["fieldManager", "manager"]) {
      const value = program.memberOf(node, name);
      if (value !== undefined) for (const text of program.textsOf(value)) found.add(text);
    }
  });
  return [...found].filter((text) => !/^…*$/.test(text)).sort();
}

const parsed = new Map<string, readonly ts.SourceFile[]>();

/** Returns the sources of a package that may contain names. */
function filesOf(folder: string, program: SourceProgram): readonly ts.SourceFile[] {
  if (folder === "runtime") return program.files;
  const known = parsed.get(folder);
  if (known !== undefined) return known;
  const { createSourceFile, ScriptTarget } = program.compiler;
  const root = join(repositoryRoot, folder, "src");
  const files = readdirSync(root, { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => [name, readFileSync(join(root, name), "utf8")] as const)
    .filter(([, text]) => /gen-operator\.dev|["`]gen-operator|simulate\/|\benv\b|\/finalizer/.test(text))
    .map(([name, text]) => createSourceFile(name, text, ScriptTarget.Latest, true));
  parsed.set(folder, files);
  return files;
}

/** Returns all strings in the sources of a package, with `…` for interpolated values. */
function textsIn(folder: string, program: SourceProgram): string[] {
  const { compiler } = program;
  const texts: string[] = [];
  const visit = (node: ts.Node): void => {
    if (compiler.isStringLiteralLike(node)) texts.push(node.text);
    else if (compiler.isTemplateExpression(node))
      texts.push([node.head.text, ...node.templateSpans.map(({ literal }) => OPEN + literal.text)].join(""));
    compiler.forEachChild(node, visit);
  };
  for (const file of filesOf(folder, program)) visit(file);
  return texts;
}

/** Returns the templates of new projects. The examples are created from the samples only while the package is packed. */
function templateTexts(): string[] {
  return ["project", "stubs", "deploy"]
    .flatMap((folder) => {
      const root = join(repositoryRoot, "templates", folder);
      return readdirSync(root, { recursive: true, withFileTypes: true, encoding: "utf8" });
    })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), "utf8"));
}

function unique(texts: readonly string[]): string[] {
  return [...new Set(texts)].sort();
}

function sectionsOf(sections: { readonly [title: string]: readonly string[] }): string {
  const texts = Object.entries(sections).map(([title, lines]) => [`## ${title}`, "", ...lines].join("\n"));
  return `${texts.join("\n\n")}\n`;
}
