// What the operator can do in the container that its Deployment describes: with its command, user, file system, mounts and token.
import { execFileSync } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { apiRequestOrThrow } from "../../support/api/api-request.js";
import { findBinary } from "../../support/machine/binaries.js";
import { borrowControlPlane } from "../../support/machine/borrow-control-plane.js";
import type { ControlPlane } from "../../support/machine/control-plane.js";
import { freePorts } from "../../support/machine/free-ports.js";
import { repositoryRoot } from "../../support/repository.js";
import { assert, shared, suite } from "../../support/suite.js";
import { createTemporaryFolder } from "../../support/temporary-folder.js";
import { runBinary } from "./deploy-folder.js";
import { deploySample, problemWithPods, type DeployedReplica } from "./deployed-sample.js";

const SAMPLE = join(repositoryRoot, "fixtures/samples/webpage");
const NAMESPACE = "webpage-system";
const TOKEN = "a-token-that-is-mounted";
const patient = { timeoutMs: 120_000 };
/** A value for each setting in --help that has to be one with which the operator can start. */
const VALUES: { readonly [flag: string]: string } = {
  ...{ "log-level": "debug", "log-format": "json", namespaces: "default", "leader-elect": "true" },
  ...{ "leader-election-id": "webpage-leader", "leader-election-namespace": NAMESPACE },
  ...{ "leader-elect-lease-duration": "20s", "leader-elect-renew-deadline": "12s", "leader-elect-retry-period": "3s" },
  ...{ "leader-election-on-loss": "standby", "proof-key.name": "gen-operator-proof-key" },
  ...{ "proof-key.namespace": NAMESPACE, "metrics-authentication": "true", "check-crds": "true" },
  ...{ "request-timeout": "30s", "max-connections": "8", "start-timeout": "1m", "stop-timeout": "20s" },
  ...{ "watchdog-timeout": "30s", "watchdog-on-hang": "exit", config: "/etc/operator/settings.yaml" },
  ...{ "debug-token-file": "/etc/extra/debug-token", kubeconfig: "/etc/extra/kubeconfig" },
  ...{ "controllers.webpage.log-level": "info", "controllers.webpage.namespaces": "default" },
  ...{ "controllers.webpage.label-selector": "app!=skip", "controllers.webpage.field-selector": "metadata.name!=skip" },
  ...{ "controllers.webpage.max-concurrent-reconciles": "4", "controllers.webpage.reconcile-timeout": "1m" },
  ...{ "controllers.webpage.max-reconciliation-interval": "1h", "controllers.webpage.retry.max-retries": "3" },
  ...{ "controllers.webpage.retry.initial-interval": "1s", "controllers.webpage.retry.multiplier": "2" },
  ...{ "controllers.webpage.retry.max-interval": "1m", "controllers.webpage.retry.jitter": "0.1" },
  ...{ "controllers.webpage.rate-limit.max-reconciliations": "5", "controllers.webpage.rate-limit.within": "2s" },
};

/** What a user adds to what was generated. */
interface Additions {
  readonly args?: readonly string[];
  readonly env?: readonly { readonly name: string; readonly value: string }[];
  /** Whether the Secret `extra` is mounted at /etc/extra. */
  readonly hasExtra?: boolean;
  readonly metricsAuthentication?: boolean;
}

const VOLUME = { name: "extra", secret: { secretName: "extra" } };
const MOUNT = { name: "extra", mountPath: "/etc/extra", readOnly: true };

/** Each way to install what was generated, with additions of a user. */
const WAYS: {
  readonly [title: string]: (plane: ControlPlane, additions: Additions) => Promise<void>;
} = {
  async "the kustomization"(plane, { args = [], env = [], hasExtra = false, metricsAuthentication = false }) {
    await using folder = await createTemporaryFolder();
    const at = "/spec/template/spec";
    const patch = [
      ...args.map((value) => ({ op: "add", path: `${at}/containers/0/args/-`, value })),
      ...env.map((value) => ({ op: "add", path: `${at}/containers/0/env/-`, value })),
      ...(hasExtra ? [{ op: "add", path: `${at}/containers/0/volumeMounts/-`, value: MOUNT }] : []),
      ...(hasExtra ? [{ op: "add", path: `${at}/volumes/-`, value: VOLUME }] : []),
    ];
    const deploy = `../${relative(folder.path, SAMPLE)}/deploy`;
    const kustomization = {
      resources: [deploy],
      components: metricsAuthentication ? [`${deploy}/metrics-authentication`] : [],
      patches: [{ target: { kind: "Deployment" }, patch: JSON.stringify(patch) }],
    };
    await mkdir(join(folder.path, "overlay"));
    await writeFile(join(folder.path, "overlay/kustomization.yaml"), JSON.stringify(kustomization));
    const apply = ["apply", "--server-side", "--force-conflicts", "-k", "overlay"];
    const { status, stderr } = runBinary("kubectl", folder.path, ["--kubeconfig", plane.kubeconfig, ...apply]);
    assert.equal([stderr, status], ["", 0]);
  },
  async "the chart"(plane, { args = [], env = [], hasExtra = false, metricsAuthentication = false }) {
    const values = {
      ...{ crds: { install: false }, extraArgs: args, extraEnv: env },
      ...{ extraVolumes: hasExtra ? [VOLUME] : [], extraVolumeMounts: hasExtra ? [MOUNT] : [] },
      metricsAuthentication: { enabled: metricsAuthentication },
    };
    const upgrade = ["upgrade", "--install", "webpage", "deploy", "--namespace", NAMESPACE, "--create-namespace"];
    const args_ = ["--kubeconfig", plane.kubeconfig, ...upgrade, "--values", "-"];
    const { status, stderr } = runBinary("helm", SAMPLE, args_, JSON.stringify(values));
    assert.equal([stderr, status], ["", 0]);
  },
};

for (const [way, install] of Object.entries(WAYS))
  suite(`contained operator installed by ${way}`, (test) => {
    const problem = way === "the chart" && findBinary("helm") === undefined ? "there is no Helm" : problemWithPods();
    if (problem !== undefined) return test.skip("all tests", problem);
    const server = shared(async () => {
      const plane = await borrowControlPlane();
      return { plane, [Symbol.asyncDispose]: () => plane.close() };
    });
    const deploy = async (additions: Additions) => {
      const { plane } = await server();
      return deploySample(plane, "webpage", { install: () => install(plane, additions) });
    };
    const addresses = async () => {
      const [probes, metrics, debug] = (await freePorts(3)).map((port) => `127.0.0.1:${port}`);
      const flags = {
        "health-probe-bind-address": probes,
        "metrics-bind-address": metrics,
        "debug-bind-address": debug,
      };
      return { flags: flags as { [flag: string]: string }, probes, metrics, debug };
    };
    const argsOf = (flags: { readonly [flag: string]: string }) =>
      Object.entries(flags).map(([flag, value]) => `--${flag}=${value}`);
    const untilLed = (replica: DeployedReplica) => replica.untilLogged('"started"');

    test(
      "serves the debug endpoint, with its token in the only writable folder",
      async () => {
        const { flags, probes, debug } = await addresses();
        // A heap snapshot stops the process, on a busy machine for longer than the default of 10 s.
        const patience = { "leader-elect-lease-duration": "3m", "leader-elect-renew-deadline": "2m" };
        const sample = await deploy({ args: argsOf({ ...flags, ...patience }) });
        await using replica = await sample.startContained();
        await untilLed(replica);
        const [, file = ""] = /the token of the debug endpoint is in ([^"]+)"/.exec(replica.log.join("\n")) ?? [];
        assert.match(file, /^\/tmp\//);
        const authorization = `Bearer ${(await replica.readFile(file)).trim()}`;
        const statusAt = async (path: string, headers: { [name: string]: string } = { authorization }) => {
          const answer = await fetch(`http://${debug}/debug/${path}`, { headers });
          await answer.arrayBuffer();
          return answer.status;
        };
        assert.is(await statusAt("state"), 200);
        assert.is(await statusAt("state", {}), 401);
        assert.is(await statusAt("cpu-profile?seconds=1"), 200);
        assert.is(await statusAt("heap-snapshot"), 200);
        for (const path of ["livez", "readyz", "startupz"])
          assert.is((await fetch(`http://${probes}/${path}`)).status, 200);
        assert.is(await replica.terminate(), 0);
      },
      patient,
    );

    test(
      "exits with 1 and logs the missing RBAC permissions if authenticated metrics lack them",
      async () => {
        const { flags } = await addresses();
        const sample = await deploy({ args: [...argsOf(flags), "--metrics-authentication"] });
        await using replica = await sample.startContained();
        await replica.untilLogged(
          "may not create tokenreviews.authentication.k8s.io and create subjectaccessreviews.authorization.k8s.io",
        );
        assert.is(await replica.ended, 1);
        assert.not.ok(replica.log.some((line) => line.includes('"started"')));
      },
      patient,
    );

    for (const place of ["flags", "variables of the environment"])
      test(
        `accepts every setting of --help as ${place}, and serves metrics to the PodMonitor's token`,
        async () => {
          const { plane } = await server();
          const { flags, metrics, debug } = await addresses();
          const values = { ...VALUES, ...flags };
          const named = settingsInHelp();
          assert.equal([...named.keys()].sort(), Object.keys(values).sort());
          const env = [...named].map(([flag, variable]) => ({ name: variable, value: values[flag] ?? "" }));
          const sample = await deploy({
            ...(place === "flags" ? { args: argsOf(values) } : { env }),
            ...{ hasExtra: true, metricsAuthentication: true },
          });
          const kubeconfig = kubeconfigOf(plane, sample.connection.token);
          await createSecret(plane, { "debug-token": TOKEN, kubeconfig });
          await using replica = await sample.startContained();
          await untilLed(replica);
          const state = await fetch(`http://${debug}/debug/state`, { headers: { authorization: `Bearer ${TOKEN}` } });
          assert.is(state.status, 200);
          const reader = `POST /api/v1/namespaces/${NAMESPACE}/serviceaccounts/webpage-metrics-reader/token`;
          const body = {
            apiVersion: "authentication.k8s.io/v1",
            kind: "TokenRequest",
            spec: { expirationSeconds: 3600 },
          };
          const { status } = await apiRequestOrThrow<{ status: { token: string } }>(plane, reader, { body });
          const scrape = async (token?: string) => {
            const headers = token === undefined ? {} : { authorization: `Bearer ${token}` };
            return (await fetch(`http://${metrics}/metrics`, { headers })).status;
          };
          // The operator itself may not read its metrics.
          const statuses = [await scrape(), await scrape(sample.connection.token), await scrape(status.token)];
          assert.equal(statuses, [401, 403, 200]);
          assert.is(await replica.terminate(), 0);
        },
        patient,
      );
  });

/** The flags that --help of the operator lists, each with its variable. */
function settingsInHelp(): ReadonlyMap<string, string> {
  const help = execFileSync(process.execPath, [join(SAMPLE, "dist/src/main.js"), "--help"], { encoding: "utf8" });
  const settings = [...help.matchAll(/^ +--(\S+)\n.*?(?:\[([A-Z_]+)\])?$/gm)];
  return new Map(settings.map(([, flag = "", variable = "KUBECONFIG"]) => [flag, variable]));
}

async function createSecret(plane: ControlPlane, stringData: { readonly [file: string]: string }): Promise<void> {
  const path = `/api/v1/namespaces/${NAMESPACE}/secrets/extra?fieldManager=test&force=true`;
  const body = { apiVersion: "v1", kind: "Secret", metadata: { name: "extra" }, stringData };
  await apiRequestOrThrow(plane, `PATCH ${path}`, { body, contentType: "application/apply-patch+yaml" });
}

function kubeconfigOf({ url, ca }: ControlPlane, token: string | undefined): string {
  const cluster = { server: url, "certificate-authority-data": Buffer.from(ca).toString("base64") };
  return JSON.stringify({
    ...{ apiVersion: "v1", kind: "Config", "current-context": "a" },
    clusters: [{ name: "a", cluster }],
    users: [{ name: "a", user: { token } }],
    contexts: [{ name: "a", context: { cluster: "a", user: "a" } }],
  });
}
