export {
  configKeyProblems,
  dns1035Problems,
  labelNameProblems,
  labelValueProblems,
  pathSegmentProblems,
  portNameProblems,
  qualifiedNameProblems,
  subdomainProblems,
  underscoredProblems,
} from "@gen-operator/schema/definitions";
