// node test/dist/control-plane/record/record-go-types.js writes apiserver/data/kubernetes-1.36-go-types.json: what the schemas of built-in kinds do not
// say of the Go types behind them, and error messages of Go's decoder name: types of text, and embedded structs. It reads the types.go files of
// the pinned Go modules (which Go has to be there for).
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { builtinSchemas } from "#apiserver/builtin/schemas.js";
import { repositoryRoot } from "../../support/repository.js";

const MODULES = ["api", "apimachinery"].map((name) => `k8s.io/${name}`);
const OUTPUT = join(repositoryRoot, "apiserver/data/kubernetes-1.36-go-types.json");

interface Field {
  /** The name in JSON; "" for an embedded struct. */
  name: string;
  type: string;
}

/** Fields by the name of the schema, e.g. `io.k8s.api.core.v1.ServiceSpec`. */
const structs = new Map<string, Field[]>();
/** Names of types whose values are text, e.g. `io.k8s.api.core.v1.ServiceType`. */
const texts = new Set<string>();

for (const module of MODULES) {
  const folder = execFileSync("go", ["list", "-m", "-f", "{{.Dir}}", module], {
    cwd: join(repositoryRoot, "test/control-plane"),
    encoding: "utf8",
  }).trim();
  for (const file of readdirSync(folder, { recursive: true, encoding: "utf8" }).sort())
    if (/(^|\/)(types\w*|micro_time|duration|uid|nodename)\.go$/.test(file) && !file.endsWith("_test.go"))
      readTypes(
        readFileSync(join(folder, file), "utf8"),
        `${module.replace("k8s.io/", "io.k8s.")}.${dirname(file).replaceAll("/", ".")}`,
      );
}
const lines = Object.keys(builtinSchemas())
  .sort()
  .flatMap((name) => {
    const facts = factsOf(name);
    return Object.keys(facts).length === 0 ? [] : [`${JSON.stringify(name)}:${JSON.stringify(facts)}`];
  });
writeFileSync(OUTPUT, `{\n${lines.join(",\n")}\n}\n`);
console.log(`${lines.length} structs written to ${basename(OUTPUT)}`);

function readTypes(source: string, packageName: string): void {
  const imports = new Map<string, string>();
  for (const [, alias, path = ""] of source.matchAll(/^\t(?:(\w+) )?"k8s\.io\/([^"]+)"/gm))
    imports.set(alias ?? basename(path), `io.k8s.${path.replaceAll("/", ".")}`);
  for (const [, name = ""] of source.matchAll(/^type (\w+) string$/gm)) texts.add(`${packageName}.${name}`);
  for (const [, name = "", body = ""] of source.matchAll(/^type (\w+) struct \{\n([\s\S]*?)^\}/gm)) {
    const fields: Field[] = [];
    for (const [, type = "", json = ""] of body.matchAll(/^\t(?:\w+ +)?([\w.*[\]]+) +`json:"([^"]*)"/gm))
      fields.push({ name: json.split(",")[0] ?? "", type: qualified(type, { packageName, imports }) });
    structs.set(`${packageName}.${name}`, fields);
  }
}

/** `[]*v1.ServiceType` with the package in full. */
function qualified(type: string, of: { packageName: string; imports: Map<string, string> }): string {
  const [, prefix = "", name = ""] = /^((?:\[\]|\*|map\[string\])*)([\w.]+)$/.exec(type) ?? [];
  const [first = "", second] = name.split(".");
  if (second === undefined) return /^[A-Z]/.test(first) ? `${prefix}${of.packageName}.${first}` : type;
  return `${prefix}${of.imports.get(first) ?? first}.${second}`;
}

function factsOf(name: string): Record<string, string> {
  const facts: Record<string, string> = {};
  for (const field of structs.get(name) ?? []) {
    const [, prefix = "", type = ""] = /^((?:\[\]|\*|map\[string\])*)(.*)$/.exec(field.type) ?? [];
    if (field.name === "") {
      const embedded = type.split(".").at(-1) ?? "";
      for (const { name: member } of structs.get(type) ?? []) if (member !== "") facts[member] = `${embedded}.`;
    } else if (texts.has(type)) {
      const [version, short] = type.split(".").slice(-2);
      facts[field.name] = `${prefix.replaceAll("*", "")}${version}.${short}`;
    }
  }
  for (const member of ["kind", "apiVersion"]) if (facts[member] === "TypeMeta.") delete facts[member];
  return facts;
}
