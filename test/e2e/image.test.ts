// What `docker build` makes of a new project, and what a kubelet then starts: in a folder of its own, from which nothing else can be reached.
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { parse } from "yaml";
import { waitFor } from "#apiserver/wait-for.js";
import { bundledSources } from "../support/projects/bundled-sources.js";
import { freePorts } from "../support/machine/free-ports.js";
import { createProcessGroup } from "../support/machine/process-group.js";
import { assert, shared, suite } from "../support/suite.js";
import { buildImage, containerCommand, containerEnvironment, type Image } from "./image.js";
import { findNode24 } from "./node-24.js";
import { packPackages } from "./packages.js";
import { CRD, createPage, startProjectServer, webPage, type ProjectServer } from "./running-operator.js";
import { createUserProject, installTools, type UserProject } from "./user-project.js";

const LONG = { timeoutMs: 400_000 };

interface Deployment {
  readonly metadata: { readonly namespace: string };
  readonly spec: { readonly template: { readonly spec: PodSpec } };
}

interface PodSpec {
  readonly securityContext: { readonly runAsUser: number; readonly runAsGroup: number };
  readonly containers: readonly [{ readonly command?: unknown; readonly args: readonly string[] }];
}

const STUB = "src/webpage/dependents/config-map.ts";

suite("container image of a new project", (test) => {
  const packages = shared(async () => packPackages(await findNode24()));
  let building: Promise<{ readonly project: UserProject; readonly image: Image }> | undefined;
  const build = () => (building ??= createImage());
  const createImage = async () => {
    const packed = await packages();
    const crd = "fixtures/samples/webpage/crds/webpages.example.com.yaml";
    const tools = await installTools(packed);
    const project = await createUserProject(packed, { name: "webpage-operator", crd, tools });
    const refuse =
      'function nameOf(name: string): string {\n  if (name === "bad") throw new Error("told to");\n  return name;\n}';
    await project.replace(STUB, "export const desired", `${refuse}\n\nexport const desired`);
    await project.replace(STUB, "name: primary.metadata.name", "name: nameOf(primary.metadata.name)");
    await mkdir(join(project.folder, "dist"));
    for (const path of ["dist/left-over.js", "node_modules/left-over.js", "left-over.log"])
      await project.write(path, "");
    // As deep as the project, so that the archives in its lock file are found.
    const image = await buildImage({ context: project.folder, folder: packed.folder, node: packed.node });
    return { project, image };
  };

  test(
    "excludes the files of .dockerignore from the build context, and builds without errors",
    async () => {
      const { image } = await build();
      const app = join(image.stages.get("build")!, "app");
      const files = await readdir(app);
      assert.ok(["node_modules", "src", "bundle.js"].every((name) => files.includes(name)));
      assert.equal((await readdir(join(app, "deploy"))).sort(), ["crds", "generated"]);
      for (const folder of [app, join(app, "dist"), join(app, "node_modules")])
        assert.equal(
          (await readdir(folder)).filter((name) => name.startsWith("left-over")),
          [],
        );
    },
    LONG,
  );

  test(
    "contains only the bundle, its source map and third-party notices",
    async () => {
      const { image } = await build();
      assert.ok(image.files.includes("app/dist/bundle/operator.mjs"));
      assert.equal(
        image.files.filter((file) => !/^app\/dist\/bundle\/([\w-]+\.mjs(\.map)?|THIRD-PARTY-NOTICES\.txt)$/.test(file)),
        [],
      );
      assert.equal(
        image.files.filter((file) => file.endsWith(".map")),
        ["app/dist/bundle/operator.mjs.map"],
      );
      const programs = image.files.filter((file) => file.endsWith(".mjs"));
      const texts = await Promise.all(programs.map((file) => readFile(join(image.root, file), "utf8")));
      const sources = texts.flatMap(bundledSources);
      assert.ok(sources.some((source) => source.includes("node_modules/undici/")));
      assert.equal(
        sources.filter((source) => source.includes("@kubernetes/client-node")),
        [],
      );
    },
    LONG,
  );

  test(
    "runs in the Pod of its manifests, logs TypeScript positions in stacks, and exits with 0",
    async () => {
      const { project, image } = await build();
      const deployment = parse(await project.read("deploy/manifests/deployment.yaml")) as Deployment;
      const { namespace } = deployment.metadata;
      const { securityContext, containers } = deployment.spec.template.spec;
      const [container] = containers;
      assert.is(image.user, `${securityContext.runAsUser}:${securityContext.runAsGroup}`);
      assert.not.ok("command" in container, "a command would replace the flags of ENTRYPOINT");

      const group = await createProcessGroup("gen-operator-image-");
      try {
        const server = await startProjectServer(group, project.folder, { node: (await packages()).node, crd: CRD });
        await server.request("POST /api/v1/namespaces", { metadata: { name: namespace } });
        await mountPodFiles(image, { project, server, namespace });
        const [probes = 0, metrics = 0] = await freePorts(2);
        const ports = [
          `--health-probe-bind-address=127.0.0.1:${probes}`,
          `--metrics-bind-address=127.0.0.1:${metrics}`,
        ];
        const { hostname: KUBERNETES_SERVICE_HOST, port: KUBERNETES_SERVICE_PORT } = new URL(server.connection.url);
        const pod = { KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT, POD_NAME: "webpage-operator-0" };
        const command = containerCommand(image, [...container.args, ...ports]);
        const operator = group.start("operator", "env", [...containerEnvironment(image, pod), ...command]);
        const log = () => readFile(join(group.folder, "operator.log"), "utf8");
        const isReady = async () => {
          const problem = await operator.problem();
          if (problem !== undefined) throw new Error(problem);
          return fetch(`http://127.0.0.1:${probes}/readyz`).then(({ ok }) => ok);
        };
        await waitFor("the operator is ready", isReady, { timeoutMs: 30_000 });
        await createPage(server);

        await server.request("POST /apis/example.com/v1/namespaces/default/webpages", webPage("bad"));
        const findFailure = async () =>
          (await log()).split("\n").find((line) => /told to.*"stack"|"stack".*told to/.test(line));
        const failure = await waitFor("a failure with its stack", findFailure);
        assert.match(
          (JSON.parse(failure) as { stack: string }).stack,
          /at desired .*\/app\/src\/webpage\/dependents\/config-map\.ts:\d+:\d+/,
        );

        await operator.stop();
        assert.match((await operator.problem())!, /^operator exited with 0:/);
        const lines = (await log()).trim().split("\n");
        for (const line of lines) assert.is(typeof (JSON.parse(line) as { message: unknown }).message, "string");
      } finally {
        await group.close();
      }
    },
    LONG,
  );
});

interface Mounted {
  readonly project: UserProject;
  readonly server: ProjectServer;
  readonly namespace: string;
}

/** Writes the files that a kubelet mounts into the pod: those of the service account, and the settings. */
async function mountPodFiles({ root }: Image, { project, server, namespace }: Mounted): Promise<void> {
  const { token, ca = "" } = server.connection;
  const account = join(root, "var/run/secrets/kubernetes.io/serviceaccount");
  const settings = join(root, "etc/operator");
  for (const folder of [account, settings]) await mkdir(folder, { recursive: true });
  for (const [name, text] of Object.entries({ token, "ca.crt": ca, namespace }))
    await writeFile(join(account, name), text);
  await writeFile(join(settings, "settings.yaml"), await project.read("deploy/settings.yaml"));
}
