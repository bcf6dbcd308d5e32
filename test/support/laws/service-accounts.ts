// Invariants of Pods in a cluster with the ServiceAccount admission plugin.
import { waitFor } from "#apiserver/wait-for.js";
import { apiRequest, type Connection } from "../api/api-request.js";
import { assert, type DeclareTest } from "../suite.js";
import { TEST_OPTIONS } from "./cluster-steps.js";
import { type AnyObject, type ClusterSpace, openClusterSpace, podTemplate } from "./space-of-cluster.js";

const MOUNT_PATH = "/var/run/secrets/kubernetes.io/serviceaccount";
const SECRET = { secretKeyRef: { name: "hidden", key: "k" } };

/** Declares how the ServiceAccount admission plugin mutates Pods, and which Pods it rejects. */
export function declareServiceAccountLaws(test: DeclareTest, connect: () => Promise<Connection>): void {
  const law = (title: string, body: (space: ClusterSpace, refusalOf: RefusalOf) => Promise<void>) =>
    test(
      title,
      async () => {
        const cluster = await connect();
        const space = await openClusterSpace(cluster);
        const path = `/api/v1/namespaces/${space.namespace}/pods`;
        const refusalOf: RefusalOf = async (spec, metadata = {}) => {
          const body = { metadata: { name: "web", ...metadata }, spec };
          const answer = await apiRequest<{ message: string }>(cluster, `POST ${path}`, { body });
          return `${answer.status} ${answer.body.message}`;
        };
        await body(space, refusalOf);
      },
      TEST_OPTIONS,
    );

  law("sets the default ServiceAccount of a Pod and mounts its token into each container", async (space) => {
    const own = { name: "own", image: "a", volumeMounts: [{ name: "tmp", mountPath: MOUNT_PATH }] };
    await space.create("pods", {
      metadata: { name: "web" },
      spec: {
        initContainers: [{ name: "first", image: "a" }],
        containers: [{ name: "web", image: "a" }, own],
        volumes: [{ name: "tmp", emptyDir: {} }],
      },
    });
    const { spec = {} } = (await space.get("pods", "web")) as AnyObject;
    const { volumes, containers, initContainers } = spec as unknown as PodSpec;
    const name = volumes[1]?.name ?? "";
    assert.match(name, /^kube-api-access-[a-z0-9]{5}$/);
    const token = { name, readOnly: true, mountPath: MOUNT_PATH };
    assert.equal(
      [...initContainers, ...containers].map(({ volumeMounts }) => volumeMounts),
      [[token], [token], [{ name: "tmp", mountPath: MOUNT_PATH }]],
    );
    assert.equal(volumes[1]?.["projected"], {
      sources: [
        { serviceAccountToken: { expirationSeconds: 3607, path: "token" } },
        { configMap: { name: "kube-root-ca.crt", items: [{ key: "ca.crt", path: "ca.crt" }] } },
        {
          downwardAPI: {
            items: [{ path: "namespace", fieldRef: { apiVersion: "v1", fieldPath: "metadata.namespace" } }],
          },
        },
      ],
      defaultMode: 420,
    });
    assert.equal([spec["serviceAccountName"], spec["serviceAccount"]], ["default", "default"]);
  });

  law("takes token mounting and image pull secrets from the ServiceAccount unless the Pod sets them", async (space) => {
    await space.create("serviceaccounts", {
      metadata: { name: "plain" },
      automountServiceAccountToken: false,
      imagePullSecrets: [{ name: "registry" }],
    });
    const made = async (name: string, more: object) => {
      const containers = [{ name: "web", image: "a" }];
      await space.create("pods", { metadata: { name }, spec: { serviceAccountName: "plain", containers, ...more } });
      const { volumes = [], imagePullSecrets } = ((await space.get("pods", name)) as AnyObject)
        .spec as unknown as PodSpec;
      return [volumes.length, imagePullSecrets];
    };
    assert.equal(await made("as-account", {}), [0, [{ name: "registry" }]]);
    const own = { automountServiceAccountToken: true, imagePullSecrets: [{ name: "own" }] };
    assert.equal(await made("as-itself", own), [1, [{ name: "own" }]]);
    const existing = [{ name: "kube-api-access-mine", emptyDir: {} }];
    assert.equal(await made("with-volume", { automountServiceAccountToken: true, volumes: existing }), [
      1,
      [{ name: "registry" }],
    ]);
  });

  law("rejects Pods of a missing ServiceAccount with 403, also those of a ReplicaSet", async (space, refusalOf) => {
    const { namespace } = space;
    const missing = `error looking up service account ${namespace}/nobody: serviceaccount "nobody" not found`;
    const spec = { serviceAccountName: "nobody", containers: [{ name: "web", image: "a" }] };
    assert.is(await refusalOf(spec), `403 pods "web" is forbidden: ${missing}`);
    const unnamed = await refusalOf(spec, { name: "", generateName: "web-" });
    assert.is(unnamed, `403 pods "web-" is forbidden: ${missing}`);
    await space.create("replicasets", {
      metadata: { name: "web" },
      spec: {
        selector: { matchLabels: { app: "web" } },
        template: podTemplate("web", { spec: { serviceAccountName: "nobody" } }),
      },
    });
    const failed = await space.until("replicasets", "web", ({ status }) => status?.["conditions"] !== undefined);
    const [condition] = failed.status?.["conditions"] as { message: string }[];
    assert.match(condition?.message ?? "", missing);
  });

  law("rejects other Secrets with 403 under enforce-mountable-secrets", async (space, refusalOf) => {
    await space.create("serviceaccounts", {
      metadata: { name: "strict", annotations: { "kubernetes.io/enforce-mountable-secrets": "true" } },
      secrets: [{ name: "shown" }],
    });
    const strict = (spec: object) =>
      refusalOf({ serviceAccountName: "strict", containers: [{ name: "web", image: "a" }], ...spec });
    const because = "is not allowed because service account strict does not reference that";
    const refused = (what: string) => `403 pods "web" is forbidden: ${what}`;
    const container = (more: object) => ({ name: "c", image: "a", ...more });
    assert.equal(
      [
        await strict({ volumes: [{ name: "v", secret: { secretName: "hidden" } }] }),
        await strict({ containers: [container({ env: [{ name: "E", valueFrom: SECRET }] })] }),
        await strict({ containers: [container({ envFrom: [{ secretRef: { name: "hidden" } }] })] }),
        await strict({ initContainers: [container({ env: [{ name: "E", valueFrom: SECRET }] })] }),
        await strict({ initContainers: [container({ envFrom: [{ secretRef: { name: "hidden" } }] })] }),
        await strict({ imagePullSecrets: [{ name: "hidden" }] }),
      ],
      [
        refused(`volume with secret.secretName="hidden" ${because} secret`),
        refused(`container c with envVar E referencing secret.secretName="hidden" ${because} secret`),
        refused(`container c with envFrom referencing secret.secretName="hidden" ${because} secret`),
        refused(`init container c with envVar E referencing secret.secretName="hidden" ${because} secret`),
        refused(`init container c with envFrom referencing secret.secretName="hidden" ${because} secret`),
        refused(`imagePullSecrets[0].name="hidden" ${because} imagePullSecret`),
      ],
    );
    assert.match(await strict({ volumes: [{ name: "v", secret: { secretName: "shown" } }] }), /^201 /);
  });

  law("runs the admission plugins in the order of kube-apiserver", async (space, refusalOf) => {
    await space.create("serviceaccounts", {
      metadata: { name: "strict", annotations: { "kubernetes.io/enforce-mountable-secrets": "true" } },
    });
    const max = { cpu: "1" };
    await space.create("limitranges", { metadata: { name: "max" }, spec: { limits: [{ type: "Container", max }] } });
    const labels = { "pod-security.kubernetes.io/enforce": "restricted" };
    await space.patch("namespaces", space.namespace, { metadata: { labels } });
    const web = (resources: object) => ({ containers: [{ name: "web", image: "a", resources }] });
    const small = web({ requests: { cpu: "1" }, limits: { cpu: "1" } });
    const large = web({ requests: { cpu: "2" }, limits: { cpu: "2" } });
    const [limited, secured, missing, hidden] = [
      /maximum cpu usage per Container is 1/,
      /violates PodSecurity "restricted:latest"/,
      /no PriorityClass with name nothing was found/,
      /imagePullSecrets\[0\]\.name="hidden" is not allowed/,
    ];
    // A real API server observes both some time after they are stored.
    await waitFor("the LimitRange", async () => limited.test(await refusalOf(large, { name: "", generateName: "a-" })));
    await waitFor("the level", async () => secured.test(await refusalOf(small, { name: "", generateName: "a-" })));
    assert.match(await refusalOf(large), limited);
    const classed = { priorityClassName: "nothing" };
    assert.match(await refusalOf({ ...large, ...classed }), missing);
    const pulled = { serviceAccountName: "strict", imagePullSecrets: [{ name: "hidden" }] };
    assert.match(await refusalOf({ ...large, ...classed, ...pulled }), hidden);
  });

  law("rejects a mirror Pod with a ServiceAccount, Secret or token projection with 403", async (_, refusalOf) => {
    const mirror = (spec: object) =>
      refusalOf(
        { nodeName: "n", containers: [{ name: "web", image: "a" }], ...spec },
        { annotations: { "kubernetes.io/config.mirror": "x" } },
      );
    const projected = { sources: [{ serviceAccountToken: { path: "token" } }] };
    assert.equal(
      [
        await mirror({ serviceAccountName: "default" }),
        await mirror({ volumes: [{ name: "v", secret: { secretName: "s" } }] }),
        await mirror({ containers: [{ name: "c", image: "a", env: [{ name: "E", valueFrom: SECRET }] }] }),
        await mirror({ volumes: [{ name: "v", projected }] }),
      ],
      [
        'pods "web" is forbidden: a mirror pod may not reference service accounts',
        'pods "web" is forbidden: a mirror pod may not reference secrets',
        'pods "web" is forbidden: a mirror pod may not reference secrets',
        'pods "web" is forbidden: a mirror pod may not use ServiceAccountToken volume projections',
      ].map((message) => `403 ${message}`),
    );
    assert.match(await mirror({}), /^201 /);
  });
}

type RefusalOf = (spec: object, metadata?: object) => Promise<string>;

interface PodSpec {
  volumes: { name: string; projected?: object }[];
  containers: { volumeMounts?: object[] }[];
  initContainers: { volumeMounts?: object[] }[];
  imagePullSecrets?: object[];
}
