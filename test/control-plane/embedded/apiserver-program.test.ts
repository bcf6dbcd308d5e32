// The command line of the embedded server, as a process, with kubectl beside it.
import { execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { createAuthority, issueCertificate, subjectOf } from "#apiserver/x509/authority.js";
import { parse } from "yaml";
import { findBinaryOrThrow } from "../../support/machine/binaries.js";
import { assert, suite } from "../../support/suite.js";
import { createTemporaryFolder } from "../../support/temporary-folder.js";
import { startProgram } from "./apiserver-program.js";

const DEPLOYMENT = `
apiVersion: apps/v1
kind: Deployment
metadata: { name: web }
spec:
  selector: { matchLabels: { app: web } }
  template: { metadata: { labels: { app: web } }, spec: { containers: [{ name: web, image: nginx }] } }
`;

async function kubectl(kubeconfig: string, line: string): Promise<string> {
  const args = [`--kubeconfig=${kubeconfig}`, ...line.split(" ")];
  return (await promisify(execFile)(findBinaryOrThrow("kubectl"), args, { timeout: 30_000 })).stdout.trim();
}

const base64 = (text: string): string => Buffer.from(text).toString("base64");

suite("bin/apiserver.js", (test) => {
  test("prints one line, serves kubectl, and exits with 0 on SIGTERM", async () => {
    await using folder = await createTemporaryFolder();
    const kubeconfig = join(folder.path, "kubeconfig");
    await using program = startProgram(["--port", "0", "--kubeconfig", kubeconfig]);
    assert.match(await program.ready(), /^https:\/\/127\.0\.0\.1:\d+$/);
    assert.is(await kubectl(kubeconfig, "get namespace default -o name"), "namespace/default");
    program.kill("SIGTERM");
    const { code, stdout, stderr } = await program.ended;
    assert.is(code, 0);
    assert.match(stdout, /^ready https:\/\/127\.0\.0\.1:\d+\n$/);
    assert.is(stderr, "");
  });

  test("authenticates users by token file, and by certificates of --client-ca-file", async () => {
    await using folder = await createTemporaryFolder();
    const [tokens, clientCa] = ["tokens.csv", "ca.crt"].map((name) => join(folder.path, name)) as [string, string];
    const authority = createAuthority("clients");
    await writeFile(tokens, 'secret,ann,ann-uid,"readers,writers"\n');
    await writeFile(clientCa, authority.certificate);
    const admin = join(folder.path, "kubeconfig");
    const options = ["--kubeconfig", admin, "--token-auth-file", tokens, "--client-ca-file", clientCa];
    await using program = startProgram(options);
    await program.ready();
    const subject = subjectOf({ commonName: "jane", organizations: ["readers"] });
    const { certificate, key } = issueCertificate(authority, { subject, usages: ["client auth"] });
    const credentials = {
      ann: { token: "secret" },
      jane: { "client-certificate-data": base64(certificate), "client-key-data": base64(key) },
    };
    const whoAmI = async (name: keyof typeof credentials) => {
      const config = parse(await readFile(admin, "utf8")) as { users: { user: object }[] };
      config.users[0]!.user = credentials[name];
      const file = join(folder.path, name);
      await writeFile(file, JSON.stringify(config));
      return kubectl(file, "auth whoami -o jsonpath={.status.userInfo.username}:{.status.userInfo.groups}");
    };
    assert.is(await whoAmI("ann"), 'ann:["readers","writers","system:authenticated"]');
    assert.is(await whoAmI("jane"), 'jane:["readers","system:authenticated"]');
  });

  test("exits with 0 on SIGINT despite an open watch", async () => {
    await using folder = await createTemporaryFolder();
    const kubeconfig = join(folder.path, "kubeconfig");
    await using program = startProgram(["--kubeconfig", kubeconfig]);
    await program.ready();
    const watching = kubectl(kubeconfig, "get namespaces --watch -o name").catch(() => "broken");
    await kubectl(kubeconfig, "get namespaces -o name");
    program.kill("SIGINT");
    assert.is((await program.ended).code, 0);
    await watching;
  });

  test("installs CRDs with --crds, and makes workloads available with --simulate", async () => {
    await using folder = await createTemporaryFolder();
    const kubeconfig = join(folder.path, "kubeconfig");
    const crds = "test/conformance/definitions.yaml";
    await using program = startProgram(["--kubeconfig", kubeconfig, "--simulate", "--crds", crds]);
    await program.ready();
    const resources = await kubectl(kubeconfig, "api-resources --api-group=example.com -o name");
    for (const name of ["gadgets", "samples", "widgets"]) assert.match(resources, `${name}.example.com`);
    const file = join(folder.path, "deployment.yaml");
    await writeFile(file, DEPLOYMENT);
    await kubectl(kubeconfig, `apply -f ${file}`);
    const condition = "wait --for=condition=Available deployment/web --timeout=20s";
    assert.is(await kubectl(kubeconfig, condition), "deployment.apps/web condition met");
  });

  test("runs only the controllers that --simulate names or does not exclude", async () => {
    const nodesWith = async (simulate: string) => {
      await using folder = await createTemporaryFolder();
      const kubeconfig = join(folder.path, "kubeconfig");
      await using program = startProgram(["--kubeconfig", kubeconfig, `--simulate=${simulate}`]);
      await program.ready();
      return await kubectl(kubeconfig, "get nodes -o name");
    };
    assert.is(await nodesWith("pods,deployments"), "node/simulated");
    assert.is(await nodesWith("-pods"), "");
    await using unknown = startProgram(["--simulate=pods,kubelets"]);
    const { code, stderr } = await unknown.ended;
    assert.is(code, 1);
    assert.match(stderr, /^invalid value "kubelets" of --simulate: must be one of garbage-collection, [^\n]*\n$/);
  });

  test("exits with 1 if the port is in use", async () => {
    const other = createServer();
    await new Promise<void>((done) => other.listen(0, "127.0.0.1", () => done()));
    const { port } = other.address() as AddressInfo;
    await using program = startProgram(["--port", String(port)]);
    const { code, stdout, stderr } = await program.ended;
    other.close();
    assert.is(code, 1);
    assert.is(stdout, "");
    assert.is(stderr, `port ${port} is already in use\n`);
  });

  test("exits with 1 and one line for unknown options and missing files", async () => {
    await using unknown = startProgram(["--odd"]);
    const { code, stderr } = await unknown.ended;
    assert.is(code, 1);
    assert.match(stderr, "Unknown argument: odd");
    for (const option of ["--crds", "--kubeconfig"]) {
      await using missing = startProgram([option, "missing/file.yaml"]);
      const ended = await missing.ended;
      assert.is(ended.code, 1, option);
      assert.match(ended.stderr, /^[^\n]*missing\/file\.yaml[^\n]*\n$/);
      assert.is(ended.stdout, "");
    }
  });
});
