// Imports: the path of a stub that moves, and the names that generated files have for its types.
import { posix } from "node:path";
import { Node, type ImportSpecifier, type SourceFile } from "ts-morph";
import type { PendingMove } from "./pending-moves.js";
import type { TextEdit } from "./rename-in-code.js";

interface ImportOptions {
  /** The path of the file in the project. */
  readonly path: string;
  readonly move: PendingMove;
}

/** Returns what changes in the imports of a file, and where the imported names are used. */
export function importEdits(file: SourceFile, { path, move }: ImportOptions): TextEdit[] {
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
        // Whoever imports it from here goes on with the name that it has here.
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
  /** All names in the file. */
  readonly names: ReadonlySet<string>;
}

function specifierEdits(specifier: ImportSpecifier, { file, move, names }: SpecifierOptions): TextEdit[] {
  const name = specifier.getNameNode();
  const present = move.names.get(name.getText());
  if (present === undefined || present === name.getText()) return [];
  if (specifier.getAliasNode() !== undefined) return [replace(name, present)];
  // The file has the name for something else.
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

/** Returns the file that a module stands for, relative to the project and without its extension. */
function targetOf(path: string, module: string): string {
  return module.startsWith(".") ? posix.join(posix.dirname(path), module).replace(/\.[mc]?[jt]s$/, "") : "";
}

function textOfArgument(node: Node): string {
  return node.getText().slice(1, -1);
}

/** Returns the edit that replaces a node. */
export function replace(node: Node, text: string): TextEdit {
  return { start: node.getStart(), end: node.getEnd(), text };
}
