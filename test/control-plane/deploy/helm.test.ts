// The folder `deploy` of a new project as a Helm chart.
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { findBinary } from "../../support/machine/binaries.js";
import { assert, shared, suite } from "../../support/suite.js";
import { createDeployFolder, parseManifests, runBinary, TEAM, type Manifest } from "./deploy-folder.js";

const NAMESPACE = "pages-system";
const DIGEST = `sha256:${"0".repeat(64)}`;

suite("Helm chart", (test) => {
  if (findBinary("helm") === undefined) return test.skip("all tests", "there is no Helm");
  const project = shared(createDeployFolder);

  /** Renders the chart with values, as the installation into a namespace would. */
  const render = async (values: object = {}, namespace = NAMESPACE) => {
    const { path } = await project();
    const args = ["template", "pages", "deploy", "--namespace", namespace, "--values", "-"];
    return runBinary("helm", path, args, JSON.stringify(values));
  };
  const objectsOf = async (values?: object, namespace?: string) => {
    const { stdout, stderr, status } = await render(values, namespace);
    assert.equal([stderr, status], ["", 0]);
    return parseManifests(stdout);
  };

  test("passes helm lint --strict", async () => {
    const { path } = await project();
    const { status, stdout, stderr } = runBinary("helm", path, ["lint", "--strict", "deploy"]);
    assert.is(status, 0, stdout + stderr);
  });

  test("renders the same objects as kustomize, except the Namespace and resource policies", async () => {
    const { path } = await project();
    const expected = wholeOf(path);
    const rendered = Object.fromEntries(await objectsOf());
    const { [`Namespace ${NAMESPACE}`]: own, ...others } = Object.fromEntries(expected);
    assert.ok(own);
    assert.equal(withoutKeeping(rendered), others);
  });

  test("renders monitoring and authentication like the kustomize components", async () => {
    await using own = await createDeployFolder();
    const file = join(own.path, "deploy/kustomization.yaml");
    const text = await readFile(file, "utf8");
    const components = /^# (components:\n)# ( +- monitoring\n)# ( +- metrics-authentication)$/m;
    await writeFile(file, text.replace(components, "$1$2$3"));
    const enabled = { enabled: true };
    const monitoring = { podMonitor: enabled, prometheusRule: enabled, grafanaDashboard: enabled };
    const rendered = Object.fromEntries(await objectsOf({ monitoring, metricsAuthentication: enabled }));
    const { [`Namespace ${NAMESPACE}`]: _, ...expected } = Object.fromEntries(wholeOf(own.path));
    assert.is(Object.keys(expected).filter((title) => /^(PodMonitor|PrometheusRule) /.test(title)).length, 2);
    assert.equal(withoutKeeping(rendered), expected);
  });

  test("moves namespaced objects to the release namespace", async () => {
    const objects = await objectsOf({}, "other");
    const namespaces = new Set([...objects.values()].flatMap(({ metadata }) => metadata.namespace ?? []));
    assert.equal([...namespaces].sort(), ["other", TEAM]);
    for (const [title, { subjects = [] }] of objects)
      for (const { namespace } of subjects as { namespace: string }[]) assert.is(namespace, "other", title);
  });

  test("keeps CRDs on uninstall, and omits them with crds.install=false", async () => {
    const title = "CustomResourceDefinition webpages.example.com";
    const { annotations } = (await objectsOf()).get(title)?.metadata ?? {};
    assert.equal(annotations, {
      ...{ "helm.sh/resource-policy": "keep", "example.com/note": "kept" },
      "argocd.argoproj.io/sync-options": "Prune=false,Delete=false",
      "kustomize.toolkit.fluxcd.io/prune": "disabled",
    });
    assert.not.ok((await objectsOf({ crds: { install: false } })).has(title));
  });

  test("gives cluster-scoped objects a name per release, except CRDs", async () => {
    const outside = async (namespace: string) => {
      const objects = await objectsOf({ metricsAuthentication: { enabled: true } }, namespace);
      return new Map([...objects].filter(([, { metadata }]) => metadata.namespace !== namespace));
    };
    const [first, second, third] = [await outside(NAMESPACE), await outside("other"), await outside("third")];
    const titles = [...first.keys(), ...second.keys(), ...third.keys()];
    const shared = titles.filter((title, at) => titles.indexOf(title) !== at);
    assert.equal([...new Set(shared)], ["CustomResourceDefinition webpages.example.com"]);
    assert.is(second.size, first.size);
    // What refers to them has the names, too.
    const binding = second.get("ValidatingAdmissionPolicyBinding pages-links-other") as unknown as { spec: object };
    assert.equal(binding.spec, { policyName: "pages-links-other", validationActions: ["Deny"] });
    for (const [title, object] of second)
      if (title.includes("RoleBinding")) {
        const { name, kind } = object["roleRef"] as { name: string; kind: string };
        const { namespace } = object.metadata;
        assert.ok(second.has(`${kind} ${namespace === undefined ? name : `${namespace}/${name}`}`), title);
      }
    assert.match(
      JSON.stringify(second.get("ValidatingAdmissionPolicy pages-links-other")),
      "ClusterRole pages-links-other",
    );
    const install = JSON.stringify(second.get("ValidatingAdmissionPolicy pages-install-other"));
    assert.match(install, '"resourceNames":["pages-other","pages-links-other"]');
  });

  test("omits the admission policies with admissionPolicy.enabled=false", async () => {
    const titles = [...(await objectsOf({ admissionPolicy: { enabled: false } })).keys()];
    assert.equal(
      titles.filter((title) => /pages-(links|install)/.test(title)),
      [],
    );
  });

  test("applies values for the Deployment, the settings and the ServiceAccount", async () => {
    const objects = await objectsOf({
      image: { repository: "registry.example.com/pages", digest: DIGEST },
      ...{ replicas: 2, extraArgs: ["--log-level=debug"], settings: { logLevel: "warn" } },
      serviceAccount: { annotations: { "example.com/role": "pages" } },
      ...{ extraVolumes: [{ name: "debug", secret: { secretName: "debug" } }] },
      ...{ extraVolumeMounts: [{ name: "debug", mountPath: "/etc/debug" }] },
    });
    const deployment = objects.get(`Deployment ${NAMESPACE}/pages`) as unknown as Deployment;
    const [container] = deployment.spec.template.spec.containers;
    assert.is(deployment.spec.replicas, 2);
    assert.is(container?.image, `registry.example.com/pages@${DIGEST}`);
    assert.is(container?.args.at(-1), "--log-level=debug");
    assert.equal(container?.volumeMounts.at(-1), { name: "debug", mountPath: "/etc/debug" });
    assert.equal(deployment.spec.template.spec.volumes.at(-1), { name: "debug", secret: { secretName: "debug" } });
    const settings = objects.get(`ConfigMap ${NAMESPACE}/pages-settings`)?.["data"] as { "settings.yaml": string };
    assert.match(settings["settings.yaml"], "logLevel: warn");
    const account = objects.get(`ServiceAccount ${NAMESPACE}/pages`);
    assert.equal(account?.metadata.annotations, { "example.com/role": "pages" });
  });

  const wrong: readonly [string, object][] = [
    ["replicas", { replicas: "two" }],
    ["replica", { replica: 2 }],
    ["repositry", { image: { repositry: "a" } }],
    ["enabled", { monitoring: { podMonitor: { enabled: "yes" } } }],
  ];
  for (const [name, values] of wrong)
    test(`rejects ${JSON.stringify(values)} and names the field`, async () => {
      const { status, stderr } = await render(values);
      assert.not.equal(status, 0);
      assert.match(stderr, name);
    });
});

interface Deployment {
  readonly spec: {
    readonly replicas: number;
    readonly template: {
      readonly spec: {
        readonly containers: readonly { image: string; args: readonly string[]; volumeMounts: readonly object[] }[];
        readonly volumes: readonly object[];
      };
    };
  };
}

type Manifests = { readonly [title: string]: Manifest };

function kustomized(path: string, folder: string): ReadonlyMap<string, Manifest> {
  const { stdout, stderr } = runBinary("kubectl", path, ["kustomize", folder]);
  assert.is(stderr, "");
  return parseManifests(stdout);
}

/** All that kustomize installs, by both folders. */
function wholeOf(path: string): ReadonlyMap<string, Manifest> {
  return new Map([...kustomized(path, "deploy/crds"), ...kustomized(path, "deploy")]);
}

/** Takes off what only Helm's definitions have. */
function withoutKeeping(manifests: Manifests): Manifests {
  return Object.fromEntries(
    Object.entries(manifests).map(([title, manifest]) => {
      const { annotations: { "helm.sh/resource-policy": policy, ...annotations } = {}, ...metadata } =
        manifest.metadata;
      if (policy === undefined) return [title, manifest];
      return [title, { ...manifest, metadata: { ...metadata, annotations } }];
    }),
  );
}
