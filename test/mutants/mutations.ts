// Small changes of the source that a test should notice: an await or a statement that is missing, a condition that is negated.
import { Node, Project, type ExpressionStatement, type SourceFile } from "ts-morph";
import fc from "../support/fast-check.js";

/** What is changed. */
export type MutationKind = "dropped await" | "dropped statement" | "negated condition";

/** A change of one place. It is found again by its text after the place has moved to another file. */
export interface Mutation {
  readonly kind: MutationKind;
  /** The package, such as `runtime`. */
  readonly package: string;
  /** The functions and classes around it, from the outermost: `Elector.#renew`. */
  readonly within: string;
  /** The code that is changed, in one line. */
  readonly text: string;
  /** Which one it is of those with the same kind, names and text, from 0. */
  readonly occurrence: number;
}

/** A mutation with its place. */
export interface MutationSite extends Mutation {
  /** Relative to the root of the repository. */
  readonly file: string;
  readonly line: number;
  readonly start: number;
  readonly end: number;
  readonly replacement: string;
  /** The name of the function around it, as V8 has it; empty outside of named functions. */
  readonly functionName: string;
}

/** Returns what tells a mutation apart from all others. */
export function mutationKey({ kind, package: name, within, text, occurrence }: Mutation): string {
  return JSON.stringify([kind, name, within, text, occurrence]);
}

/** Finds all mutations in files of TypeScript, given by their paths from the root. */
export function findMutations(files: ReadonlyMap<string, string>): MutationSite[] {
  const project = new Project({
    useInMemoryFileSystem: true,
    skipLoadingLibFiles: true,
    skipFileDependencyResolution: true,
  });
  const sites = [...files].flatMap(([file, text]) => {
    const source = project.createSourceFile(`/${file}`, text);
    const found = mutationsIn(source, file);
    project.removeSourceFile(source);
    return found;
  });
  const counts = new Map<string, number>();
  return sites.map((site) => {
    const key = mutationKey({ ...site, occurrence: 0 });
    const occurrence = counts.get(key) ?? 0;
    counts.set(key, occurrence + 1);
    return { ...site, occurrence };
  });
}

function mutationsIn(source: SourceFile, file: string): MutationSite[] {
  const sites: MutationSite[] = [];
  const add = (kind: MutationKind, node: Node, replacement: string) => {
    const around = namesAround(node);
    sites.push({
      kind,
      package: file.slice(0, file.indexOf("/")),
      within: around.join("."),
      text: node.getText().replace(/\s+/g, " "),
      occurrence: 0,
      file,
      line: node.getStartLineNumber(),
      start: node.getStart(),
      end: node.getEnd(),
      replacement,
      // V8 gives a constructor the name of its class.
      functionName: (around.at(-1) === "constructor" ? around.at(-2) : around.at(-1)) ?? "",
    });
  };
  source.forEachDescendant((node) => {
    // Types disappear, and a declaration that is missing would not even load.
    if (Node.isAwaitExpression(node)) add("dropped await", node, `(${node.getExpression().getText()})`);
    else if (Node.isExpressionStatement(node) && !isSuperCall(node)) add("dropped statement", node, ";");
    else if (Node.isIfStatement(node) || Node.isConditionalExpression(node)) {
      const condition = Node.isIfStatement(node) ? node.getExpression() : node.getCondition();
      add("negated condition", condition, `!(${condition.getText()})`);
    }
  });
  return sites;
}

// Without it nothing of the class works, which any test notices.
function isSuperCall(statement: ExpressionStatement): boolean {
  const called = statement.getExpression();
  return Node.isCallExpression(called) && Node.isSuperExpression(called.getExpression());
}

function namesAround(node: Node): string[] {
  return node
    .getAncestors()
    .flatMap((each) => {
      const name = nameOf(each);
      return name === undefined ? [] : [name];
    })
    .reverse();
}

function nameOf(node: Node): string | undefined {
  if (Node.isConstructorDeclaration(node)) return "constructor";
  if (Node.isClassDeclaration(node) || Node.isFunctionDeclaration(node) || Node.isMethodDeclaration(node))
    return node.getName();
  if (Node.isGetAccessorDeclaration(node) || Node.isSetAccessorDeclaration(node)) return node.getName();
  if (!Node.isArrowFunction(node) && !Node.isFunctionExpression(node)) return undefined;
  const parent = node.getParent();
  const isNamed = Node.isVariableDeclaration(parent) || Node.isPropertyAssignment(parent);
  return isNamed || Node.isPropertyDeclaration(parent) ? parent.getName() : undefined;
}

/** Returns the text of a file with a mutation. */
export function mutate(text: string, { start, end, replacement }: MutationSite): string {
  return text.slice(0, start) + replacement + text.slice(end);
}

/** Chooses `count` mutations at random. The same seed chooses the same ones. */
export function drawMutations(sites: readonly MutationSite[], count: number, seed: number): MutationSite[] {
  const length = Math.min(count, sites.length);
  const drawn = fc.shuffledSubarray([...sites], { minLength: length, maxLength: length });
  return fc.sample(drawn, { seed, numRuns: 1 })[0]!;
}
