"""The containers of docs/container.md in Java and Go: each program starts one, says where, and ends with its stdin."""

import asyncio
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.image.conftest import PATIENCE_SECONDS
from tests.image.test_image import round_trip

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "container.md").read_text(encoding="utf-8")

pytestmark = [pytest.mark.docker, pytest.mark.clients]

POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>groupcoord</groupId><artifactId>test</artifactId><version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.testcontainers</groupId><artifactId>testcontainers</artifactId><version>1.21.3</version>
    </dependency>
    <dependency><groupId>org.slf4j</groupId><artifactId>slf4j-nop</artifactId><version>1.7.36</version></dependency>
  </dependencies>
</project>
"""

JAVA = """\
import java.io.IOException;
import java.net.ServerSocket;
import java.util.List;
import org.testcontainers.containers.GenericContainer;
import org.testcontainers.containers.wait.strategy.Wait;

class Program {
    public static void main(String[] arguments) throws IOException {
        try (var kafka = new Groupcoord("orders:6")) {
            kafka.start();
            System.out.println(kafka.bootstrapServers);
            System.in.read();
        }
    }
}

"""

GO = """\
package main

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/wait"
)

func main() {
	kafka, address, err := startGroupcoord(context.Background(), "orders:6")
	if err != nil {
		panic(err)
	}
	defer testcontainers.TerminateContainer(kafka)
	fmt.Println(address)
	os.Stdin.Read(make([]byte, 1))
}

"""


def shown(language: str) -> str:
    (code,) = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return str(code)


def prepare(folder: Path, *command: str) -> None:
    subprocess.run(command, cwd=folder, check=True, timeout=10 * PATIENCE_SECONDS)


def broker_of(folder: Path, *command: str) -> bytes:
    """What went through the broker that the program started."""
    # The images with which testcontainers cleans up and finds its host can hardly be pulled where this one was built.
    environment = {
        **os.environ,
        "TESTCONTAINERS_RYUK_DISABLED": "true",
        "TESTCONTAINERS_HOST_OVERRIDE": "127.0.0.1",
    }
    with subprocess.Popen(
        command, cwd=folder, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as program:
        assert program.stdout is not None
        address = next(line for line in program.stdout if line.startswith("127.0.0.1:"))
        came = asyncio.run(round_trip(address.strip(), "orders"))
        program.communicate(timeout=PATIENCE_SECONDS)
    assert program.returncode == 0
    return came


def test_java(image: str, tmp_path: Path) -> None:
    (tmp_path / "pom.xml").write_text(POM, encoding="utf-8")
    (tmp_path / "Program.java").write_text(JAVA + shown("java"), encoding="utf-8")
    prepare(tmp_path, "mvn", "--quiet", "--batch-mode", "dependency:copy-dependencies", "-DoutputDirectory=libs")
    assert broker_of(tmp_path, "java", "-cp", "libs/*", "Program.java") == b"an espresso"


def test_go(image: str, tmp_path: Path) -> None:
    (tmp_path / "main.go").write_text(GO + shown("go"), encoding="utf-8")
    go = shutil.which("go") or "go"
    prepare(tmp_path, go, "mod", "init", "test")
    prepare(tmp_path, go, "get", "github.com/testcontainers/testcontainers-go@v0.45.0")
    prepare(tmp_path, go, "mod", "tidy")
    prepare(tmp_path, go, "build", "-o", "program", ".")
    assert broker_of(tmp_path, "./program") == b"an espresso"
