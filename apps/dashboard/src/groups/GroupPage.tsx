export function GroupPage() {
  return null;
}
