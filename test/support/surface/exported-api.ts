// The exported API of a package as text: everything that its importers compile against, without comments, files, and positions.
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type ts from "typescript";
import { loadLibrary } from "#generator/model/typescript.js";
import { repositoryRoot } from "../repository.js";

interface PackageJson {
  readonly name: string;
  readonly bin?: { readonly [name: string]: string };
  readonly engines?: { readonly [name: string]: string };
  readonly peerDependencies?: { readonly [name: string]: string };
  readonly peerDependenciesMeta?: { readonly [name: string]: { readonly optional?: boolean } };
  readonly exports: { readonly [subpath: string]: string | { readonly types: string; readonly default: string } };
}

/**
 * Returns the exported API of a package: its entry points, and each of their symbols with its declaration, in alphabetical order.
 *
 * Declarations that are not exported but referenced by exported ones follow at the end. The text is based on the compiled `.d.ts` files.
 */
export function exportedApiOf(folder: string): string {
  const { description, entries } = readPackage(folder);
  const compiler = loadLibrary("typescript");
  const program = compiler.createProgram(
    entries.map(({ file }) => file),
    {
      module: compiler.ModuleKind.NodeNext,
      target: compiler.ScriptTarget.ES2022,
      types: [],
      // Types are not checked, so the libraries that declarations refer to are not read.
      noLib: true,
      noResolve: false,
      skipLibCheck: true,
    },
  );
  const checker = program.getTypeChecker();
  const own = join(repositoryRoot, folder, "dist/").replaceAll("\\", "/");
  const printer = new DeclarationPrinter(compiler, checker, own);
  const sections = entries.map(({ subpath, file }) => {
    const module = checker.getSymbolAtLocation(program.getSourceFile(file)!);
    if (module === undefined) throw new Error(`${file} exports nothing: run npm run build`);
    const symbols = checker.getExportsOfModule(module).sort((one, other) => compare(one.name, other.name));
    return { subpath, symbols };
  });
  for (const { symbols } of sections) for (const symbol of symbols) printer.export(symbol);
  const texts = sections.map(({ subpath, symbols }) =>
    [`## import from "${subpath}"`, ...symbols.map((symbol) => printer.print(symbol, symbol.name))].join("\n\n"),
  );
  return `${[description, ...texts, ...printer.printHidden()].join("\n\n")}\n`;
}

/** Returns the names that each entry point of a package exports, for packages whose generated declarations have golden files of their own. */
export function exportedNamesOf(folder: string): string {
  const { description, entries } = readPackage(folder);
  const sections = entries.map(({ subpath, file }) => {
    const names = [...readFileSync(file, "utf8").matchAll(/^export (?:declare )?(\w+) (\w+)/gm)].map(
      ([, kind, name]) => `${name} ${kind}`,
    );
    return [`## import from "${subpath}"`, "", ...names.sort(compare)].join("\n");
  });
  return `${[description, ...sections].join("\n\n")}\n`;
}

function readPackage(folder: string) {
  const text = readFileSync(join(repositoryRoot, folder, "package.json"), "utf8");
  const json = JSON.parse(text) as PackageJson;
  const entries = Object.entries(json.exports).flatMap(([subpath, target]) =>
    typeof target === "string"
      ? []
      : [
          {
            subpath: subpath === "." ? json.name : `${json.name}${subpath.slice(1)}`,
            file: join(repositoryRoot, folder, target.types).replaceAll("\\", "/"),
          },
        ],
  );
  for (const { file } of entries) if (!existsSync(file)) throw new Error(`${file} is missing: run npm run build`);
  const description = [
    `# ${json.name}`,
    "",
    ...Object.entries(json.engines ?? {}).map(([name, range]) => `engine ${name} ${range}`),
    ...Object.keys(json.bin ?? {}).map((name) => `program ${name}`),
    ...Object.entries(json.peerDependencies ?? {}).map(
      ([name, range]) =>
        `peer ${name} ${range}${json.peerDependenciesMeta?.[name]?.optional === true ? " (optional)" : ""}`,
    ),
    ...Object.keys(json.exports).map((subpath) => `export ${subpath}`),
  ].join("\n");
  return { description, entries };
}

/** The reachable members of a declaration that is not exported. */
type Reach = "all" | Set<string>;

class DeclarationPrinter {
  readonly #compiler: typeof ts;
  readonly #checker: ts.TypeChecker;
  readonly #own: string;
  readonly #printer: ts.Printer;
  readonly #exported = new Set<ts.Symbol>();
  /** Symbols that are exported with `export type`, so that they cannot be constructed. */
  readonly #typeOnly = new Set<ts.Symbol>();
  readonly #hidden = new Map<ts.Symbol, Reach>();
  /** Referenced declarations that have not been followed yet. */
  readonly #open: { readonly symbol: ts.Symbol; readonly reach: Reach }[] = [];

  /** `own` is the folder of the package whose declarations are followed. */
  constructor(compiler: typeof ts, checker: ts.TypeChecker, own: string) {
    this.#compiler = compiler;
    this.#checker = checker;
    this.#own = own;
    this.#printer = compiler.createPrinter({ removeComments: true, newLine: compiler.NewLineKind.LineFeed });
  }

  /** Registers an exported symbol. */
  export(symbol: ts.Symbol): void {
    const target = this.#target(symbol);
    this.#exported.add(target);
    const specifier = symbol.declarations?.[0];
    if (specifier !== undefined && this.#compiler.isTypeOnlyExportDeclaration(specifier)) this.#typeOnly.add(target);
  }

  /** Returns the declarations of a symbol under a name. Overloads keep their order. */
  print(symbol: ts.Symbol, name: string): string {
    const target = this.#target(symbol);
    const declarations = target.declarations ?? [];
    // Of symbols of another package, only the names are printed.
    if (!declarations.some((each) => this.#isOwn(each))) return `${name} is exported from another package`;
    for (const each of declarations) this.#follow(each, "all", this.#typeOnly.has(target));
    const texts = declarations.map((each) => this.#text(each, "all", this.#typeOnly.has(target)));
    return (target.name === name ? texts : [`// under the name ${name}`, ...texts]).join("\n");
  }

  /** Returns the reachable parts of declarations that are not exported but referenced, directly or indirectly, by those printed so far. */
  printHidden(): string[] {
    for (let next = this.#open.pop(); next !== undefined; next = this.#open.pop())
      for (const each of next.symbol.declarations ?? []) this.#follow(each, next.reach, true);
    const texts = [...this.#hidden].map(([{ declarations = [] }, reach]) =>
      declarations.map((each) => this.#text(each, reach, true)).join("\n"),
    );
    return texts.length === 0 ? [] : ["## named by exported declarations, not exported", ...texts.sort(compare)];
  }

  #target(symbol: ts.Symbol): ts.Symbol {
    const { Alias } = this.#compiler.SymbolFlags;
    return (symbol.flags & Alias) !== 0 ? this.#checker.getAliasedSymbol(symbol) : symbol;
  }

  #isOwn(node: ts.Node): boolean {
    return node.getSourceFile().fileName.startsWith(this.#own);
  }

  /** Records the declarations of this package that a declaration refers to. */
  #follow(declaration: ts.Declaration, reach: Reach, isTypeOnly: boolean): void {
    const compiler = this.#compiler;
    const visit = (node: ts.Node): void => {
      if (this.#isPrivate(node) || (isTypeOnly && compiler.isConstructorDeclaration(node))) return;
      if (compiler.isIdentifier(node)) return this.#note(node, "all");
      const part = this.#partOf(node);
      if (part === undefined) return compiler.forEachChild(node, visit);
      this.#note(part.name, part.reach);
      for (const each of part.others) visit(each);
    };
    const isMembers = compiler.isInterfaceDeclaration(declaration) || compiler.isClassDeclaration(declaration);
    if (!isMembers || reach === "all") return compiler.forEachChild(declaration, visit);
    const { members, heritage } = this.#reached(declaration, reach);
    for (const each of [...members, ...heritage]) visit(each);
  }

  /** Returns the members that `Pick`, `Omit`, or an index selects from a type. */
  #partOf(node: ts.Node) {
    const compiler = this.#compiler;
    if (compiler.isIndexedAccessTypeNode(node)) {
      const { objectType, indexType } = node;
      if (!compiler.isTypeReferenceNode(objectType) || !compiler.isIdentifier(objectType.typeName)) return undefined;
      const keys = this.#literalsOf(indexType);
      return keys && { name: objectType.typeName, reach: new Set(keys), others: objectType.typeArguments ?? [] };
    }
    const name = compiler.isTypeReferenceNode(node)
      ? node.typeName
      : compiler.isExpressionWithTypeArguments(node)
        ? node.expression
        : undefined;
    if (name === undefined || !compiler.isIdentifier(name) || !/^(Pick|Omit)$/.test(name.text)) return undefined;
    const [from, picked] = (node as ts.NodeWithTypeArguments).typeArguments ?? [];
    if (from === undefined || picked === undefined || !compiler.isTypeReferenceNode(from)) return undefined;
    const keys = this.#literalsOf(picked);
    if (keys === undefined || !compiler.isIdentifier(from.typeName)) return undefined;
    const all = this.#checker.getTypeFromTypeNode(from).getProperties();
    const reach = name.text === "Pick" ? keys : all.map((each) => each.name).filter((each) => !keys.includes(each));
    return { name: from.typeName, reach: new Set(reach), others: [...(from.typeArguments ?? []), picked] };
  }

  #literalsOf(node: ts.TypeNode): string[] | undefined {
    const type = this.#checker.getTypeFromTypeNode(node);
    const types = type.isUnion() ? type.types : [type];
    const texts = types.flatMap((each) => (each.isStringLiteral() ? [each.value] : []));
    return texts.length === types.length ? texts : undefined;
  }

  #note(name: ts.Identifier, reach: Reach): void {
    const found = this.#checker.getSymbolAtLocation(name);
    const symbol = found && this.#target(found);
    const declaration = symbol?.declarations?.[0];
    if (symbol === undefined || declaration === undefined) return;
    if (this.#exported.has(symbol) || !this.#isOwn(declaration)) return;
    const statement = this.#compiler.isVariableDeclaration(declaration) ? declaration.parent.parent : declaration;
    // Parameters, type parameters, and members are not top-level declarations.
    if (!this.#compiler.isSourceFile(statement.parent)) return;
    const known = this.#hidden.get(symbol);
    if (known === "all") return;
    const added = reach === "all" ? reach : new Set([...reach].filter((each) => known?.has(each) !== true));
    if (added !== "all" && added.size === 0 && known !== undefined) return;
    this.#hidden.set(symbol, added === "all" ? added : new Set([...(known ?? []), ...added]));
    this.#open.push({ symbol, reach: added });
  }

  #reached(declaration: ts.InterfaceDeclaration | ts.ClassDeclaration, reach: ReadonlySet<string>) {
    const nameOf = ({ name }: ts.TypeElement | ts.ClassElement) => (name === undefined ? "" : this.#nameText(name));
    const members = [...(declaration.members as Iterable<ts.TypeElement | ts.ClassElement>)].filter((each) =>
      reach.has(nameOf(each)),
    );
    const isInherited = [...reach].some((key) => !members.some((each) => nameOf(each) === key));
    return { members, heritage: isInherited ? (declaration.heritageClauses ?? []) : [] };
  }

  #isPrivate(node: ts.Node): boolean {
    const { ModifierFlags, isClassElement, getCombinedModifierFlags, isPrivateIdentifier } = this.#compiler;
    if (!isClassElement(node)) return false;
    if (node.name !== undefined && isPrivateIdentifier(node.name)) return true;
    return (getCombinedModifierFlags(node) & ModifierFlags.Private) !== 0;
  }

  #text(declaration: ts.Declaration, reach: Reach, isTypeOnly: boolean): string {
    const compiler = this.#compiler;
    const statement = compiler.isVariableDeclaration(declaration) ? declaration.parent.parent : declaration;
    const shown = compiler.transform(statement as ts.Node, [this.#simplify(statement, reach, isTypeOnly)]);
    const text = this.#printer.printNode(
      compiler.EmitHint.Unspecified,
      shown.transformed[0]!,
      declaration.getSourceFile(),
    );
    return text.replace(/^(?:export )?(?:declare )?/, "").replace(/;$/, "");
  }

  /** Removes unreachable members and the files of imported types, and sorts members by name. */
  #simplify(root: ts.Node, reach: Reach, isTypeOnly: boolean): ts.TransformerFactory<ts.Node> {
    const compiler = this.#compiler;
    return ({ factory, ...context }) => {
      const partOf = (node: ts.InterfaceDeclaration | ts.ClassDeclaration) =>
        node === root && reach !== "all"
          ? this.#reached(node, reach)
          : { members: [...node.members], heritage: node.heritageClauses };
      const visitAll = <Node extends ts.Node>(nodes: readonly Node[] | undefined) =>
        nodes?.map((node) => visit(node) as Node);
      const visit = (node: ts.Node): ts.Node => {
        if (compiler.isInterfaceDeclaration(node)) {
          const { members, heritage } = partOf(node);
          return factory.createInterfaceDeclaration(
            ...([node.modifiers, node.name, visitAll(node.typeParameters), visitAll(heritage)] as const),
            this.#sorted(visitAll(members as ts.TypeElement[])!),
          );
        }
        if (compiler.isClassDeclaration(node)) {
          const { members, heritage } = partOf(node);
          const shown = (members as ts.ClassElement[]).filter(
            (each) => !this.#isPrivate(each) && !(isTypeOnly && compiler.isConstructorDeclaration(each)),
          );
          return factory.createClassDeclaration(
            ...([node.modifiers, node.name, visitAll(node.typeParameters), visitAll(heritage)] as const),
            this.#sorted(visitAll(shown)!),
          );
        }
        const inner = compiler.visitEachChild(node, visit, { factory, ...context });
        if (compiler.isTypeLiteralNode(inner)) return factory.createTypeLiteralNode(this.#sorted(inner.members));
        if (compiler.isImportTypeNode(inner) && inner.qualifier !== undefined && this.#isRelative(inner))
          return inner.isTypeOf
            ? factory.createTypeQueryNode(inner.qualifier, inner.typeArguments)
            : factory.createTypeReferenceNode(inner.qualifier, inner.typeArguments);
        return inner;
      };
      return visit;
    };
  }

  #isRelative({ argument }: ts.ImportTypeNode): boolean {
    const { isLiteralTypeNode, isStringLiteral } = this.#compiler;
    return isLiteralTypeNode(argument) && isStringLiteral(argument.literal) && argument.literal.text.startsWith(".");
  }

  // The sort is stable, so overloads keep their order.
  #sorted<Member extends ts.TypeElement | ts.ClassElement>(members: Iterable<Member>): Member[] {
    const nameOf = ({ name }: Member) => (name === undefined ? "" : this.#nameText(name));
    return [...members].sort((one, other) => compare(nameOf(one), nameOf(other)));
  }

  #nameText(name: ts.PropertyName): string {
    const compiler = this.#compiler;
    if (compiler.isComputedPropertyName(name)) return `[${name.expression.getText()}]`;
    return name.text;
  }
}

function compare(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}
