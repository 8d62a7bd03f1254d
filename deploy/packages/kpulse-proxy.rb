# The formula of a Homebrew tap. make release fills in the version and the checksums of the archives.
class KpulseProxy < Formula
  desc "GPU metrics: real utilization, workload class and health"
  homepage "https://github.com/kpulse/kpulse-proxy"
  version "@VERSION@".delete_prefix("v")
  license "Apache-2.0"

  on_macos do
    on_intel do
      url "https://github.com/kpulse/kpulse-proxy/releases/download/@VERSION@/kpulse-proxy-@VERSION@.darwin-amd64.tar.gz"
      sha256 "@sha256-darwin-amd64@"
    end
    on_arm do
      url "https://github.com/kpulse/kpulse-proxy/releases/download/@VERSION@/kpulse-proxy-@VERSION@.darwin-arm64.tar.gz"
      sha256 "@sha256-darwin-arm64@"
    end
  end
  on_linux do
    on_intel do
      url "https://github.com/kpulse/kpulse-proxy/releases/download/@VERSION@/kpulse-proxy-@VERSION@.linux-amd64.tar.gz"
      sha256 "@sha256-linux-amd64@"
    end
    on_arm do
      url "https://github.com/kpulse/kpulse-proxy/releases/download/@VERSION@/kpulse-proxy-@VERSION@.linux-arm64.tar.gz"
      sha256 "@sha256-linux-arm64@"
    end
  end

  def install
    bin.install "kpulse-proxy"
    man1.install "kpulse-proxy.1"
    bash_completion.install "completions/bash" => "kpulse-proxy"
    zsh_completion.install "completions/zsh" => "_kpulse-proxy"
  end

  test do
    assert_match "demo-node", shell_output("#{bin}/kpulse-proxy --once --backend=replay")
  end
end
