// Helm installs a chart on the simulated cluster and waits until all of it is ready.
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { startApiServer } from "#apiserver/index.js";
import { findBinary } from "../../support/machine/binaries.js";
import { assert, suite } from "../../support/suite.js";
import { createTemporaryFolder } from "../../support/temporary-folder.js";

const run = promisify(execFile);

const POD = `metadata: { labels: { app: {{ .Values.app }} } }
    spec: { containers: [{ name: c, image: "c:{{ .Values.tag }}" }] }`;
const TEMPLATES: Record<string, string> = {
  "deployment.yaml": `
apiVersion: apps/v1
kind: Deployment
metadata: { name: web }
spec:
  replicas: 2
  selector: { matchLabels: { app: {{ .Values.app }} } }
  template:
    ${POD}
`,
  "stateful-set.yaml": `
apiVersion: apps/v1
kind: StatefulSet
metadata: { name: db }
spec:
  replicas: 2
  serviceName: db
  selector: { matchLabels: { app: {{ .Values.app }} } }
  volumeClaimTemplates:
    - metadata: { name: data }
      spec: { accessModes: [ReadWriteOnce], resources: { requests: { storage: 1Gi } } }
  template:
    ${POD}
`,
  "daemon-set.yaml": `
apiVersion: apps/v1
kind: DaemonSet
metadata: { name: agent }
spec:
  selector: { matchLabels: { app: {{ .Values.app }} } }
  template:
    ${POD}
`,
  "others.yaml": `
apiVersion: v1
kind: Service
metadata: { name: web }
spec: { selector: { app: web }, ports: [{ port: 80 }] }
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: { name: shared }
spec: { accessModes: [ReadWriteOnce], resources: { requests: { storage: 1Gi } } }
---
apiVersion: batch/v1
kind: Job
metadata: { name: migrate, annotations: { helm.sh/hook: "pre-install,pre-upgrade", helm.sh/hook-delete-policy: before-hook-creation } }
spec: { template: { spec: { restartPolicy: Never, containers: [{ name: c, image: c }] } } }
`,
};

suite("Helm on simulated controllers", (test) => {
  const helm = findBinary("helm");
  if (helm === undefined) return test.skip("all tests", "there is no Helm");
  test(
    "installs, upgrades, rolls back and uninstalls a chart with --wait",
    async () => {
      await using folder = await createTemporaryFolder();
      await using server = await startApiServer({ simulate: true });
      const kubeconfig = join(folder.path, "kubeconfig");
      await server.writeKubeconfig(kubeconfig);
      const chart = join(folder.path, "chart");
      await mkdir(join(chart, "templates"), { recursive: true });
      await writeFile(join(chart, "Chart.yaml"), "apiVersion: v2\nname: shop\nversion: 1.0.0\n");
      await writeFile(join(chart, "values.yaml"), "app: shop\ntag: one\n");
      for (const [name, text] of Object.entries(TEMPLATES)) await writeFile(join(chart, "templates", name), text);
      const env = { ...process.env, HOME: folder.path, KUBECONFIG: kubeconfig };
      const play = async (line: string) => (await run(helm, line.split(" "), { env })).stdout;
      const waits = "--namespace shop --wait --wait-for-jobs --timeout 60s";

      assert.match(await play(`install shop ${chart} --create-namespace ${waits}`), /STATUS: deployed/);
      assert.match(await play(`upgrade shop ${chart} --set tag=two ${waits}`), /REVISION: 2/);
      assert.match(await play(`rollback shop 1 ${waits}`), /Rollback was a success/);
      assert.match(await play("uninstall shop --namespace shop --wait --timeout 60s"), /uninstalled/);
    },
    { timeoutMs: 180_000 },
  );
});
