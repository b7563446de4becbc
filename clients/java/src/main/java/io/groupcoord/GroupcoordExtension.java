package io.groupcoord;

import java.util.List;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.ExtensionContext.Namespace;
import org.junit.jupiter.api.extension.ExtensionContext.Store;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;

/** Gives tests their brokers: see {@link WithGroupcoord}. One process serves all tests of a run. */
public final class GroupcoordExtension implements ParameterResolver, AfterEachCallback {
    private static final Namespace NAMESPACE = Namespace.create(GroupcoordExtension.class);

    @Override
    public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
        return parameter.getParameter().getType() == Groupcoord.class;
    }

    @Override
    public Groupcoord resolveParameter(ParameterContext parameter, ExtensionContext context) {
        return context.getStore(NAMESPACE).getOrComputeIfAbsent("broker", key -> newBroker(context), Groupcoord.class);
    }

    @Override
    public void afterEach(ExtensionContext context) {
        Groupcoord broker = context.getStore(NAMESPACE).remove("broker", Groupcoord.class);
        if (broker == null) {
            return;
        }
        boolean failed = context.getExecutionException().isPresent();
        if (failed) {
            System.err.println("what happened on the broker of " + context.getDisplayName() + ":\n" + broker.report());
        }
        List<String> problems = broker.end();
        if (!failed && !problems.isEmpty()) {
            throw new AssertionError(String.join("\n", problems));
        }
    }

    private static Groupcoord newBroker(ExtensionContext context) {
        Groupcoord.BrokerSettings settings = new Groupcoord.BrokerSettings();
        WithGroupcoord wanted = wanted(context);
        settings.clock(wanted.clock()).brokers(wanted.brokers());
        for (String topic : wanted.topics()) {
            String[] parts = topic.split(":");
            settings.topic(parts[0], parts.length > 1 ? Integer.parseInt(parts[1]) : 1);
        }
        for (String property : wanted.config()) {
            int equals = property.indexOf('=');
            settings.config(property.substring(0, equals), property.substring(equals + 1));
        }
        return server(context).broker().newBroker(settings);
    }

    private static WithGroupcoord wanted(ExtensionContext context) {
        WithGroupcoord ofMethod = context.getRequiredTestMethod().getAnnotation(WithGroupcoord.class);
        WithGroupcoord ofClass = context.getRequiredTestClass().getAnnotation(WithGroupcoord.class);
        if (ofMethod == null && ofClass == null) {
            throw new IllegalStateException("@WithGroupcoord is missing at " + context.getRequiredTestMethod());
        }
        return ofMethod != null ? ofMethod : ofClass;
    }

    private static GroupcoordServer server(ExtensionContext context) {
        Store ofAll = context.getRoot().getStore(NAMESPACE);
        return ofAll.getOrComputeIfAbsent("server", key -> new ServerResource(), ServerResource.class).server;
    }

    /** Closed by JUnit at the end of the run. */
    private static final class ServerResource implements Store.CloseableResource {
        private final GroupcoordServer server = GroupcoordServer.start();

        @Override
        public void close() {
            server.close();
        }
    }
}
