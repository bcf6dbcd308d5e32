// Renames dependents in user code. Edits only replace names, so that comments and formatting are preserved.
import { join, posix } from "node:path";
import {
  type ImportSpecifier,
  ModuleKind,
  ModuleResolutionKind,
  Node,
  Project,
  ScriptTarget,
  type SourceFile,
  type Type,
  ts,
} from "ts-morph";
import { isOwnPackage, typesOf } from "../code/condition-program.js";
import type { PendingMove } from "./move-code.js";

/** The replacement of a part of a text. */
export interface TextEdit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** Input of {@link renameInCode}. */
export interface RenameOptions {
  readonly root: string;
  readonly moves: readonly PendingMove[];
  /** User code with the former names. */
  readonly code: readonly CodeText[];
  /** Generated files with the new names. */
  readonly generated: readonly CodeText[];
}

// Maximum number of passes: the members of a nested pattern are only found after the names around them are replaced.
const MOST_PASSES = 10;

/** Returns user code with the new names. Stubs that move have their new path. */
export function renameInCode({ root, moves, code, generated }: RenameOptions): CodeText[] {
  const moved = new Map(moves.map(({ stub }) => [stub.from, stub.to]));
  const texts = new Map(code.map(({ path, text }) => [moved.get(path) ?? path, text]));
  const project = createCodeProject(root, [...generated, ...[...texts].map(([path, text]) => ({ path, text }))]);
  const fileAt = (path: string) => project.getSourceFileOrThrow(pathIn(root, path));
  const apply = (path: string, edits: readonly TextEdit[]) => {
    if (edits.length === 0) return;
    const text = edited(texts.get(path) ?? "", edits);
    texts.set(path, text);
    project.createSourceFile(pathIn(root, path), text, { overwrite: true });
  };
  for (const path of texts.keys()) for (const move of moves) apply(path, importEdits(fileAt(path), { path, move }));
  for (let pass = 0; pass < MOST_PASSES; pass += 1) {
    // Find all edits before applying one, because a change invalidates the program.
    const found = [...texts.keys()].map((path) => ({
      path,
      edits: moves.flatMap((move) => memberEdits(fileAt(path), move)),
    }));
    if (found.every(({ edits }) => edits.length === 0)) break;
    for (const { path, edits } of found) apply(path, edits);
  }
  return [...texts].map(([path, text]) => ({ path, text }));
}

function edited(text: string, edits: readonly TextEdit[]): string {
  return [...edits]
    .sort((a, b) => b.start - a.start)
    .reduce((before, { start, end, text: wanted }) => before.slice(0, start) + wanted + before.slice(end), text);
}

// Edits of imports: the path of a moved stub, and the names of its types in generated files.

interface ImportOptions {
  /** Path of the file in the project. */
  readonly path: string;
  readonly move: PendingMove;
}

/** Returns the edits of the imports of a file, and of the uses of the imported names. */
function importEdits(file: SourceFile, { path, move }: ImportOptions): TextEdit[] {
  const edits: TextEdit[] = [];
  const names = new Set<string>();
  file.forEachDescendant((node) => void (Node.isIdentifier(node) && names.add(node.getText())));
  const isGenerated = (module: string) => {
    const target = targetOf(path, module);
    return target === "src/generated/index" || target.startsWith(`src/generated/${move.folder}/`);
  };
  file.forEachDescendant((node) => {
    if (Node.isStringLiteral(node) && isModule(node)) edits.push(...pathEdits(node, { path, move }));
    if (Node.isImportDeclaration(node) && isGenerated(node.getModuleSpecifierValue())) {
      for (const specifier of node.getNamedImports()) edits.push(...specifierEdits(specifier, { file, move, names }));
      const namespace = node.getNamespaceImport();
      if (namespace !== undefined)
        file.forEachDescendant((use) => edits.push(...qualifiedEdits(use, namespace.getText(), move)));
    }
    if (Node.isExportDeclaration(node) && isGenerated(node.getModuleSpecifierValue() ?? ""))
      for (const specifier of node.getNamedExports()) {
        const present = move.names.get(specifier.getName());
        const name = specifier.getNameNode();
        // Keep the exported name, which other files import from here.
        if (present !== undefined)
          edits.push(replace(name, specifier.getAliasNode() ? present : `${present} as ${name.getText()}`));
      }
    if (Node.isImportTypeNode(node) && isGenerated(textOfArgument(node.getArgument()))) {
      const qualifier = node.getQualifier();
      const present = qualifier && move.names.get(qualifier.getText());
      if (qualifier !== undefined && present !== undefined) edits.push(replace(qualifier, present));
    }
  });
  return edits;
}

function isModule(node: Node): boolean {
  const parent = node.getParent();
  if (Node.isImportDeclaration(parent) || Node.isExportDeclaration(parent)) return true;
  if (Node.isCallExpression(parent)) return Node.isImportExpression(parent.getExpression());
  return Node.isLiteralTypeNode(parent) && Node.isImportTypeNode(parent.getParent());
}

function pathEdits(node: Node, { path, move }: ImportOptions): TextEdit[] {
  const written = node.getText().slice(1, -1);
  if (targetOf(path, written) !== move.stub.from.replace(/\.ts$/, "")) return [];
  const [before, after] = [move.stub.from, move.stub.to].map((stub) => posix.basename(stub, ".ts"));
  const present = written.replace(new RegExp(`${before}(\\.[mc]?[jt]s)?$`), `${after}$1`);
  const start = node.getStart() + 1;
  return [{ start, end: start + written.length, text: present }];
}

interface SpecifierOptions {
  readonly file: SourceFile;
  readonly move: PendingMove;
  /** All identifiers in the file. */
  readonly names: ReadonlySet<string>;
}

function specifierEdits(specifier: ImportSpecifier, { file, move, names }: SpecifierOptions): TextEdit[] {
  const name = specifier.getNameNode();
  const present = move.names.get(name.getText());
  if (present === undefined || present === name.getText()) return [];
  if (specifier.getAliasNode() !== undefined) return [replace(name, present)];
  // The new name is already used in the file.
  if (names.has(present)) return [replace(name, `${present} as ${name.getText()}`)];
  const edits = [replace(name, present)];
  file.forEachDescendant((node) => {
    if (!Node.isIdentifier(node) || node === name || node.getText() !== name.getText()) return;
    const parent = node.getParent();
    if (Node.isShorthandPropertyAssignment(parent)) {
      const symbol = parent.getValueSymbol();
      if (symbol?.getDeclarations().includes(specifier) === true)
        edits.push(replace(node, `${node.getText()}: ${present}`));
      return;
    }
    if (node.getSymbol()?.getDeclarations().includes(specifier) !== true) return;
    const isExported = Node.isExportSpecifier(parent) && parent.getAliasNode() === undefined;
    edits.push(replace(node, isExported ? `${present} as ${node.getText()}` : present));
  });
  return edits;
}

// types.WebDesired
function qualifiedEdits(node: Node, namespace: string, { names }: PendingMove): TextEdit[] {
  const [left, right] = Node.isQualifiedName(node)
    ? [node.getLeft(), node.getRight()]
    : Node.isPropertyAccessExpression(node)
      ? [node.getExpression(), node.getNameNode()]
      : [];
  const present = right && names.get(right.getText());
  return right !== undefined && present !== undefined && left?.getText() === namespace ? [replace(right, present)] : [];
}

/** Returns the path of a relative module, relative to the project and without extension. */
function targetOf(path: string, module: string): string {
  return module.startsWith(".") ? posix.join(posix.dirname(path), module).replace(/\.[mc]?[jt]s$/, "") : "";
}

function textOfArgument(node: Node): string {
  return node.getText().slice(1, -1);
}

/** Returns an edit that replaces a node. */
function replace(node: Node, text: string): TextEdit {
  return { start: node.getStart(), end: node.getEnd(), text };
}

// Edits of member names. A name refers to the dependent if the containing type has a member with the new name but none with the former one.

type Names = Pick<PendingMove, "from" | "to">;

/** Returns the edits of the members and strings in a file that refer to a dependent by its former name. */
function memberEdits(file: SourceFile, names: Names): TextEdit[] {
  if (!file.getFullText().includes(names.from)) return [];
  const edits: TextEdit[] = [];
  file.forEachDescendant((node) => {
    const edit = editOf(node, names);
    if (edit !== undefined) edits.push(edit);
  });
  return edits;
}

function editOf(node: Node, names: Names): TextEdit | undefined {
  const { from, to } = names;
  if (Node.isIdentifier(node) && node.getText() === from) return nameEdit(node, names);
  const isText = Node.isStringLiteral(node) || Node.isNoSubstitutionTemplateLiteral(node);
  if (!isText || node.getLiteralText() !== from || !isName(node, names)) return undefined;
  return { start: node.getStart() + 1, end: node.getEnd() - 1, text: to };
}

function nameEdit(node: Node, names: Names): TextEdit | undefined {
  const { from, to } = names;
  const parent = node.getParentOrThrow();
  if (Node.isPropertyAccessExpression(parent))
    return parent.getNameNode() === node && isMoved(parent.getExpression().getType(), names)
      ? replace(node, to)
      : undefined;
  if (Node.isBindingElement(parent)) {
    const pattern = parent.getParent();
    const property = parent.getPropertyNameNode();
    const isProperty = property === node || (property === undefined && parent.getNameNode() === node);
    if (!isProperty || !Node.isObjectBindingPattern(pattern) || parent.getDotDotDotToken() !== undefined)
      return undefined;
    if (!isMoved(pattern.getType(), names)) return undefined;
    // Keep the name of the variable.
    return replace(node, property === node ? to : `${to}: ${from}`);
  }
  if (Node.isShorthandPropertyAssignment(parent))
    return parent.getNameNode() === node && isMovedIn(parent.getParent(), names)
      ? replace(node, `${to}: ${from}`)
      : undefined;
  const isMember =
    Node.isPropertyAssignment(parent) || Node.isMethodDeclaration(parent) || Node.isGetAccessorDeclaration(parent);
  return isMember && parent.getNameNode() === node && isMovedIn(parent.getParent(), names)
    ? replace(node, to)
    : undefined;
}

/** Returns whether a string refers to the dependent. */
function isName(node: Node, names: Names): boolean {
  const parent = node.getParentOrThrow();
  if (Node.isElementAccessExpression(parent) && parent.getArgumentExpression() === node)
    return isMoved(parent.getExpression().getType(), names);
  if (Node.isPropertyAssignment(parent) && parent.getNameNode() === node) return isMovedIn(parent.getParent(), names);
  if (Node.isBindingElement(parent) && parent.getPropertyNameNode() === node)
    return isMoved(parent.getParent().getType(), names);
  if (Node.isBinaryExpression(parent)) {
    const other = parent.getLeft() === node ? parent.getRight() : parent.getLeft();
    const operator = parent.getOperatorToken().getText();
    if (operator === "in") return parent.getLeft() === node && isMoved(other.getType(), names);
    if (/^[!=]==?$/.test(operator)) return namesMoved(other.getType(), names);
  }
  if (Node.isCaseClause(parent))
    return namesMoved(parent.getParentOrThrow().getParentOrThrow().getChildAtIndex(2).getType(), names);
  if (Node.isLiteralTypeNode(parent)) return isNameInType(parent, names);
  const expected = Node.isExpression(node) ? node.getContextualType() : undefined;
  return expected !== undefined && namesMoved(expected, names);
}

// WebPageDependents["web"], Pick<WebPageDependents, "web" | "service">
function isNameInType(node: Node, names: Names): boolean {
  const parent = node.getParent();
  if (Node.isUnionTypeNode(parent)) return isNameInType(parent, names);
  if (Node.isIndexedAccessTypeNode(parent)) return isMoved(parent.getObjectTypeNode().getType(), names);
  if (!Node.isTypeReference(parent)) return false;
  const others = parent.getTypeArguments().filter((each) => each !== node);
  return others.some((each) => isMoved(each.getType(), names) || namesMoved(each.getType(), names));
}

function isMovedIn(literal: Node | undefined, names: Names): boolean {
  const expected = Node.isObjectLiteralExpression(literal) ? literal.getContextualType() : undefined;
  return expected !== undefined && isMoved(expected, names);
}

/** Returns whether a type has a member with the new name, and none with the former one. */
function isMoved(type: Type, { from, to }: Names): boolean {
  const alternatives = type.getNonNullableType().isUnion()
    ? type.getNonNullableType().getUnionTypes()
    : [type.getNonNullableType()];
  const has = (name: string) => alternatives.some((each) => each.getApparentType().getProperty(name) !== undefined);
  return has(to) && !has(from);
}

/** Returns whether a union of strings contains the new name, and not the former one. */
function namesMoved(type: Type, { from, to }: Names): boolean {
  const alternatives = type.isUnion() ? type.getUnionTypes() : [type];
  const has = (name: string) => alternatives.some((each) => each.isStringLiteral() && each.getLiteralValue() === name);
  return has(to) && !has(from);
}

/** A file of a project in memory. */
interface CodeText {
  readonly path: string;
  readonly text: string;
}

/** Parses files with the types of the runtime and of the built-in kinds that are installed with the generator. Writes nothing. */
function createCodeProject(root: string, files: readonly CodeText[]): Project {
  const project = new Project({
    skipAddingFilesFromTsConfig: true,
    skipFileDependencyResolution: true,
    compilerOptions: {
      target: ScriptTarget.ES2022,
      lib: ["lib.es2023.d.ts"],
      module: ModuleKind.NodeNext,
      moduleResolution: ModuleResolutionKind.NodeNext,
      types: [],
      strict: true,
      exactOptionalPropertyTypes: true,
      noUncheckedIndexedAccess: true,
      skipLibCheck: true,
    },
    resolutionHost: (host, options) => ({
      resolveModuleNames: (modules, containingFile) =>
        modules.map((module) => {
          if (isOwnPackage(module)) return { resolvedFileName: typesOf(module), extension: ts.Extension.Dts };
          return ts.resolveModuleName(module, containingFile, options(), host).resolvedModule;
        }),
    }),
  });
  for (const { path, text } of files) project.createSourceFile(pathIn(root, path), text, { overwrite: true });
  return project;
}

/** Returns the absolute path of a project file, with forward slashes like the compiler. */
function pathIn(root: string, path: string): string {
  return posix.normalize(join(root, path).replaceAll("\\", "/"));
}
