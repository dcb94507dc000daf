export function FailuresPage() {
  return null;
}
