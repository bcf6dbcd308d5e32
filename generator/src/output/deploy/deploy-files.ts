import type { OutputFile } from "../files/output-file.js";
import { listTemplatesBelow, renderTemplate } from "../project/template.js";

/** Renders the manifests that a new project gets once, for an operator of this name: a base of kustomize, and a Helm chart. */
export async function renderDeployFiles(name: string): Promise<OutputFile[]> {
  const paths = await listTemplatesBelow("deploy");
  const fileAt = async (path: string) => ({ path, content: await renderTemplate(path, { name }) });
  return (await Promise.all(paths.map(fileAt))).map((file) => ({ ...file, owner: "user" }));
}
