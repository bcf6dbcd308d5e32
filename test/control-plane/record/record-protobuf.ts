// node test/dist/control-plane/record/record-protobuf.js writes apiserver/data/kubernetes-1.36-protobuf.json: the field numbers of all messages that
// bodies of built-in kinds consist of, from the .proto files of the pinned Go modules (which Go has to be there for).
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { builtinSchemas } from "#apiserver/builtin/schemas.js";
import { repositoryRoot } from "../../support/repository.js";

const MODULES = ["api", "apimachinery", "apiextensions-apiserver", "kube-aggregator"].map((name) => `k8s.io/${name}`);
const OUTPUT = join(repositoryRoot, "apiserver/data/kubernetes-1.36-protobuf.json");
const SCALARS = new Set(["string", "bytes", "bool", "int32", "int64", "double"]);

/** A message: by field number the name and type of each field, as apiserver/src/decode/protobuf.ts reads it. */
type Messages = Map<string, Map<number, string>>;

const messages: Messages = new Map();
for (const module of MODULES) {
  const folder = execFileSync("go", ["list", "-m", "-f", "{{.Dir}}", module], {
    cwd: join(repositoryRoot, "test/control-plane"),
    encoding: "utf8",
  }).trim();
  for (const file of readdirSync(folder, { recursive: true, encoding: "utf8" }).sort())
    if (file.endsWith("generated.proto")) readProto(readFileSync(join(folder, file), "utf8"));
}
const roots = Object.entries(builtinSchemas())
  .filter(([, schema]) => schema["x-kubernetes-group-version-kind"] !== undefined)
  .map(([name]) => name)
  .filter((name) => messages.has(name));
const reached = closureOf(roots);
const lines = [...reached].sort().map((name) => {
  const fields = [...(messages.get(name) ?? [])].sort(([a], [b]) => a - b);
  return `${JSON.stringify(name)}:${JSON.stringify(Object.fromEntries(fields))}`;
});
writeFileSync(OUTPUT, `{\n${lines.join(",\n")}\n}\n`);
console.log(`${reached.size} messages written to ${OUTPUT}`);

function readProto(text: string): void {
  const proto = /^package ([\w.]+);/m.exec(text)?.[1] ?? "";
  for (const [, name = "", body = ""] of text.matchAll(/^message (\w+) \{\n([\s\S]*?)^\}/gm)) {
    const fields = new Map<number, string>();
    const owner = openApiName(`${proto}.${name}`);
    const field = /^ {2}(?:(optional|repeated|required) )?(map<string, ?[\w.]+>|[\w.]+) (\w+) = (\d+)/gm;
    for (const [, label, type = "", member = "", number] of body.matchAll(field)) {
      const map = /^map<string, ?([\w.]+)>$/.exec(type)?.[1];
      const inner = typeName(map ?? type, proto);
      const shape = map !== undefined ? `map ${inner}` : label === "repeated" ? `list ${inner}` : inner;
      const isInline = shape === inner && !SCALARS.has(inner) && isInlined(owner, member);
      fields.set(Number(number), isInline ? `${member} inline ${inner}` : `${member} ${shape}`);
    }
    messages.set(owner, fields);
  }
}

// Go embeds some structs: in JSON their fields stand in the outer object, which therefore has no property of that name.
function isInlined(owner: string, member: string): boolean {
  const properties = builtinSchemas()[owner]?.["properties"];
  return typeof properties === "object" && properties !== null && !(member in properties);
}

function typeName(type: string, proto: string): string {
  if (SCALARS.has(type)) return type;
  return openApiName(type.startsWith(".") ? type.slice(1) : `${proto}.${type}`);
}

// k8s.io.api.core.v1.Pod is called io.k8s.api.core.v1.Pod there.
function openApiName(name: string): string {
  return name.replace(/^k8s\.io\./, "io.k8s.");
}

function closureOf(names: readonly string[]): Set<string> {
  const reached = new Set<string>();
  const waiting = [...names];
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    if (reached.has(name)) continue;
    reached.add(name);
    for (const declaration of messages.get(name)?.values() ?? []) {
      const type = declaration.split(" ").at(-1) ?? "";
      if (!SCALARS.has(type)) waiting.push(type);
    }
  }
  return reached;
}
