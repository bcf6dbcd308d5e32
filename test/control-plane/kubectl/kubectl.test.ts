// What kubectl does on the embedded server is what it does on the real one: the same commands on both, and their output compared.
import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startApiServer } from "#apiserver/index.js";
import { startSimulation } from "#apiserver/simulate/index.js";
import { findBinaryOrThrow } from "../../support/machine/binaries.js";
import { startControlPlane } from "../../support/machine/control-plane.js";
import { assert, suite } from "../../support/suite.js";

const CRD = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: { name: widgets.example.com }
spec:
  group: example.com
  names: { kind: Widget, plural: widgets, shortNames: [wd] }
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: true
      subresources: { status: {} }
      additionalPrinterColumns:
        - { name: Size, type: integer, jsonPath: .spec.size }
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              required: [size]
              properties:
                size: { type: integer, minimum: 1 }
                color: { type: string, enum: [red, green], default: red }
            status: { type: object, properties: { phase: { type: string } } }
`;
const widget = (size: number | string) => `
apiVersion: example.com/v1
kind: Widget
metadata: { name: w }
spec: { size: ${size} }
`;
const configMap = (value: string) => `
apiVersion: v1
kind: ConfigMap
metadata: { name: c, labels: { app: x } }
data: { key: "${value}" }
`;
const deployment = (replicas: number, image: string) => `
apiVersion: apps/v1
kind: Deployment
metadata: { name: web }
spec:
  replicas: ${replicas}
  selector: { matchLabels: { app: web } }
  template:
    metadata: { labels: { app: web } }
    spec:
      containers:
        - { name: web, image: "${image}", ports: [{ containerPort: 80 }], resources: { requests: { cpu: "0.5" } } }
`;

/** A command line for kubectl, and what it reads from standard input as `-f -`. */
type Command = readonly [line: string, input?: string];

const COMMANDS: readonly Command[] = [
  ["create namespace demo --dry-run=client -o name"],
  ["apply -f -", "apiVersion: v1\nkind: Namespace\nmetadata: { name: demo }\n"],
  ["apply -f -", CRD],
  ["wait --for=condition=Established crd/widgets.example.com --timeout=60s"],
  ["api-resources --api-group=example.com"],
  ["-n demo apply -f -", widget(3)],
  ["-n demo apply -f -", widget(3)],
  ["-n demo apply -f -", widget(4)],
  ["-n demo get wd"],
  ["-n demo get widgets w -o jsonpath={.spec}"],
  ["-n demo apply -f -", widget(0)],
  ["-n demo apply -f -", widget('"many"')],
  ["-n demo apply --server-side --field-manager=me -f -", widget(5)],
  ["-n demo apply --server-side --field-manager=me --force-conflicts -f -", widget(5)],
  ["-n demo apply --server-side --field-manager=you -f -", widget(6)],
  ['-n demo patch widget w --type=merge -p {"spec":{"color":"green"}}'],
  ['-n demo patch widget w --type=merge --subresource=status -p {"status":{"phase":"Fine"}}'],
  ["-n demo get widget w -o jsonpath={.spec.color}/{.status.phase}/{.metadata.generation}"],
  ["-n demo wait --for=jsonpath={.status.phase}=Fine widget/w --timeout=60s"],
  ["-n demo apply -f -", configMap("one")],
  ["-n demo apply -f -", configMap("two")],
  ["-n demo get cm -l app=x"],
  ["-n demo describe cm c"],
  ['-n demo patch cm c --type=json -p [{"op":"replace","path":"/data/key","value":"three"}]'],
  ["-n demo get cm c -o jsonpath={.data}"],
  ["-n demo label cm c color=blue"],
  ["-n demo annotate cm c note=hello"],
  ["-n demo get cm c --show-labels"],
  ["-n demo create -f -", configMap("again")],
  ["-n demo apply -f -", deployment(1, "nginx:1.29")],
  ["-n demo apply -f -", deployment(1, "nginx:1.29")],
  ["-n demo apply -f -", deployment(2, "nginx:1.30")],
  ["-n demo wait --for=condition=Available deployment/web --timeout=60s"],
  ["-n demo rollout status deployment/web --timeout=60s"],
  ["-n demo get deployment web"],
  ["-n demo get deployment web -o jsonpath={.spec.template.spec.containers[0]}"],
  ["-n demo scale deployment web --replicas=1"],
  [
    '-n demo patch deployment web -p {"spec":{"template":{"spec":{"containers":[{"name":"web","image":"nginx:1.31"}]}}}}',
  ],
  ["-n demo get deployment web -o jsonpath={.spec.replicas}/{.spec.template.spec.containers[*].image}"],
  ["-n demo diff -f -", deployment(3, "nginx:1.31")],
  // kubectl create sends these in protobuf, and nothing else.
  ["-n demo create deployment p --image=nginx:1.29 --replicas=2 --port=80"],
  ["-n demo get deployment p -o jsonpath={.spec}"],
  ["-n demo create service nodeport s --tcp=80:http --node-port=30080"],
  ["-n demo get service s -o jsonpath={.spec.ports}{.spec.selector}{.metadata.labels}"],
  ["-n demo create cronjob j --image=busybox --schedule=*/5_*_*_*_* --restart=Never -- date"],
  ["-n demo get cronjob j -o jsonpath={.spec}"],
  ["-n demo create poddisruptionbudget b --selector=app=p --min-available=50%"],
  ["-n demo get poddisruptionbudget b -o jsonpath={.spec}"],
  ["-n demo create quota q --hard=cpu=1,memory=1024Mi"],
  ["-n demo get quota q -o jsonpath={.spec}"],
  ["-n demo create role r --verb=get --resource=pods --resource-name=a"],
  ["-n demo get role r -o jsonpath={.rules}"],
  ["-n demo delete deployment,service,cronjob,poddisruptionbudget,quota,role --all"],
  ["-n demo get deploy,cm,wd -o name"],
  ["-n demo get secret missing"],
  ["-n demo get gadgets"],
  ["-n demo delete cm c"],
  ["-n demo delete deployment web --wait=true"],
  ["-n demo delete -f -", widget(1)],
  ["delete crd widgets.example.com"],
  ["delete namespace demo"],
  ["get namespace demo"],
];

suite("kubectl", (test) => {
  test(
    "prints the same for every command on the embedded server as on kube-apiserver",
    async () => {
      await using folder = await temporaryFolder();
      await using embedded = await startApiServer({ simulate: true });
      const kubeconfig = join(folder.path, "kubeconfig");
      await embedded.writeKubeconfig(kubeconfig);
      await using plane = await startControlPlane({ controllers: true, serviceAccountAdmission: true });
      const simulation = await startSimulation(plane, { except: ["garbage-collection", "namespaces"] });
      await using _simulation = { [Symbol.asyncDispose]: () => simulation.close() };
      const [ours, theirs] = await Promise.all([play(kubeconfig), play(plane.kubeconfig)]);
      const differences = COMMANDS.flatMap(([line], index) =>
        withoutOwnWarnings(ours[index]) === theirs[index]
          ? []
          : [`kubectl ${line}\n--- embedded\n${ours[index]}\n--- real\n${theirs[index]}`],
      );
      assert.is(differences.join("\n\n"), "");
      assert.is(ours.length, COMMANDS.length);
    },
    { timeoutMs: 180_000 },
  );
});

/** Drops what the embedded server says of itself: what it stores and does not evaluate. */
function withoutOwnWarnings(output: string | undefined): string | undefined {
  return output?.replace(/\nWarning: [^\n]*the embedded API server[^\n]*/g, "");
}

async function temporaryFolder(): Promise<AsyncDisposable & { path: string }> {
  const path = await mkdtemp(join(tmpdir(), "gen-operator-kubectl-"));
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) };
}

async function play(kubeconfig: string): Promise<string[]> {
  const outputs: string[] = [];
  await using folder = await temporaryFolder();
  const input = join(folder.path, "input.yaml");
  for (const [line, text = ""] of COMMANDS) {
    await writeFile(input, text);
    const args = line
      .split(" ")
      .map((word, index, words) => (word === "-" && words[index - 1] === "-f" ? input : word));
    outputs.push(
      normalise(await kubectl([`--kubeconfig=${kubeconfig}`, `--cache-dir=${folder.path}`, ...args]), input),
    );
  }
  return outputs;
}

function kubectl(args: string[]): Promise<string> {
  return new Promise((resolve) => {
    execFile(findBinaryOrThrow("kubectl"), args, { timeout: 90_000 }, (error, stdout, stderr) => {
      resolve(`exit ${error === null ? 0 : error.code}\n${stdout}${stderr}`);
    });
  });
}

// What differs from run to run: ages, versions, identities, the names of temporary files, and the order of Go maps.
function normalise(output: string, input: string): string {
  return output
    .replaceAll(input, "INPUT")
    .replace(/\b\d+(\.\d+)?(s|ms|m)\b/g, "AGE")
    .replace(/[0-9a-f]{8}-[0-9a-f-]{27}/g, "UID")
    .replace(/\/[^\s:]*\/(LIVE|MERGED)-\d+/g, "/$1")
    .replace(/\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?Z?( [+-]\d{4}( [A-Z]+)?)?/g, "TIME")
    .replace(/(resourceVersion: )"\d+"/g, '$1"N"')
    .replace(/[ \t]+/g, " ")
    .split("\n")
    .filter((line) => !line.startsWith("Waiting for deployment"))
    .join("\n")
    .trim();
}
