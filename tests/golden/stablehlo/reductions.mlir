module @reductions attributes {mhlo.num_replicas = 1 : i32, mhlo.num_partitions = 1 : i32} {
  func.func public @main(%arg0: tensor<2x3xf32>, %arg1: tensor<2x3xi32>, %arg2: tensor<2x2xi1>, %arg3: tensor<0x2xf32>) -> (tensor<3xf32>, tensor<2xf32>, tensor<2xf32>, tensor<i32>, tensor<2xi32>, tensor<3xi32>, tensor<i32>, tensor<2xi1>, tensor<2xi1>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xi32>) {
    %0 = "stablehlo.constant"() {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
    %2 = "stablehlo.reduce"(%arg0, %0) ({
    ^bb0(%b0: tensor<f32>, %b1: tensor<f32>):
      %1 = "stablehlo.add"(%b0, %b1) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%1) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 0>} : (tensor<2x3xf32>, tensor<f32>) -> tensor<3xf32>
    %3 = "stablehlo.constant"() {value = dense<0xFF800000> : tensor<f32>} : () -> tensor<f32>
    %5 = "stablehlo.reduce"(%arg0, %3) ({
    ^bb0(%b2: tensor<f32>, %b3: tensor<f32>):
      %4 = "stablehlo.maximum"(%b2, %b3) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%4) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 1>} : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
    %6 = "stablehlo.compare"(%arg0, %arg0) {comparison_direction = #stablehlo<comparison_direction NE>} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>
    %7 = "stablehlo.constant"() {value = dense<false> : tensor<i1>} : () -> tensor<i1>
    %9 = "stablehlo.reduce"(%6, %7) ({
    ^bb0(%b4: tensor<i1>, %b5: tensor<i1>):
      %8 = "stablehlo.or"(%b4, %b5) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      "stablehlo.return"(%8) : (tensor<i1>) -> ()
    }) {dimensions = array<i64: 1>} : (tensor<2x3xi1>, tensor<i1>) -> tensor<2xi1>
    %10 = "stablehlo.constant"() {value = dense<0x7FC00000> : tensor<2xf32>} : () -> tensor<2xf32>
    %11 = "stablehlo.select"(%9, %10, %5) : (tensor<2xi1>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %12 = "stablehlo.constant"() {value = dense<0x7F800000> : tensor<f32>} : () -> tensor<f32>
    %14 = "stablehlo.reduce"(%arg0, %12) ({
    ^bb0(%b6: tensor<f32>, %b7: tensor<f32>):
      %13 = "stablehlo.minimum"(%b6, %b7) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%13) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 1>} : (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>
    %15 = "stablehlo.compare"(%arg0, %arg0) {comparison_direction = #stablehlo<comparison_direction NE>} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xi1>
    %17 = "stablehlo.reduce"(%15, %7) ({
    ^bb0(%b8: tensor<i1>, %b9: tensor<i1>):
      %16 = "stablehlo.or"(%b8, %b9) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      "stablehlo.return"(%16) : (tensor<i1>) -> ()
    }) {dimensions = array<i64: 1>} : (tensor<2x3xi1>, tensor<i1>) -> tensor<2xi1>
    %18 = "stablehlo.select"(%17, %10, %14) : (tensor<2xi1>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %19 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
    %21 = "stablehlo.reduce"(%arg1, %19) ({
    ^bb0(%b10: tensor<i32>, %b11: tensor<i32>):
      %20 = "stablehlo.add"(%b10, %b11) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      "stablehlo.return"(%20) : (tensor<i32>) -> ()
    }) {dimensions = array<i64: 0, 1>} : (tensor<2x3xi32>, tensor<i32>) -> tensor<i32>
    %22 = "stablehlo.constant"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
    %24 = "stablehlo.reduce"(%arg1, %22) ({
    ^bb0(%b12: tensor<i32>, %b13: tensor<i32>):
      %23 = "stablehlo.multiply"(%b12, %b13) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      "stablehlo.return"(%23) : (tensor<i32>) -> ()
    }) {dimensions = array<i64: 1>} : (tensor<2x3xi32>, tensor<i32>) -> tensor<2xi32>
    %25 = "stablehlo.constant"() {value = dense<-2147483648> : tensor<i32>} : () -> tensor<i32>
    %27 = "stablehlo.reduce"(%arg1, %25) ({
    ^bb0(%b14: tensor<i32>, %b15: tensor<i32>):
      %26 = "stablehlo.maximum"(%b14, %b15) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      "stablehlo.return"(%26) : (tensor<i32>) -> ()
    }) {dimensions = array<i64: 0>} : (tensor<2x3xi32>, tensor<i32>) -> tensor<3xi32>
    %28 = "stablehlo.constant"() {value = dense<2147483647> : tensor<i32>} : () -> tensor<i32>
    %30 = "stablehlo.reduce"(%arg1, %28) ({
    ^bb0(%b16: tensor<i32>, %b17: tensor<i32>):
      %29 = "stablehlo.minimum"(%b16, %b17) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      "stablehlo.return"(%29) : (tensor<i32>) -> ()
    }) {dimensions = array<i64: 1, 0>} : (tensor<2x3xi32>, tensor<i32>) -> tensor<i32>
    %31 = "stablehlo.constant"() {value = dense<true> : tensor<i1>} : () -> tensor<i1>
    %33 = "stablehlo.reduce"(%arg2, %31) ({
    ^bb0(%b18: tensor<i1>, %b19: tensor<i1>):
      %32 = "stablehlo.and"(%b18, %b19) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      "stablehlo.return"(%32) : (tensor<i1>) -> ()
    }) {dimensions = array<i64: 1>} : (tensor<2x2xi1>, tensor<i1>) -> tensor<2xi1>
    %35 = "stablehlo.reduce"(%arg2, %7) ({
    ^bb0(%b20: tensor<i1>, %b21: tensor<i1>):
      %34 = "stablehlo.or"(%b20, %b21) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      "stablehlo.return"(%34) : (tensor<i1>) -> ()
    }) {dimensions = array<i64: 0>} : (tensor<2x2xi1>, tensor<i1>) -> tensor<2xi1>
    %37 = "stablehlo.reduce"(%arg3, %3) ({
    ^bb0(%b22: tensor<f32>, %b23: tensor<f32>):
      %36 = "stablehlo.maximum"(%b22, %b23) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%36) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 0>} : (tensor<0x2xf32>, tensor<f32>) -> tensor<2xf32>
    %38 = "stablehlo.compare"(%arg3, %arg3) {comparison_direction = #stablehlo<comparison_direction NE>} : (tensor<0x2xf32>, tensor<0x2xf32>) -> tensor<0x2xi1>
    %40 = "stablehlo.reduce"(%38, %7) ({
    ^bb0(%b24: tensor<i1>, %b25: tensor<i1>):
      %39 = "stablehlo.or"(%b24, %b25) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      "stablehlo.return"(%39) : (tensor<i1>) -> ()
    }) {dimensions = array<i64: 0>} : (tensor<0x2xi1>, tensor<i1>) -> tensor<2xi1>
    %41 = "stablehlo.select"(%40, %10, %37) : (tensor<2xi1>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %43 = "stablehlo.reduce"(%arg3, %0) ({
    ^bb0(%b26: tensor<f32>, %b27: tensor<f32>):
      %42 = "stablehlo.add"(%b26, %b27) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%42) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 0>} : (tensor<0x2xf32>, tensor<f32>) -> tensor<2xf32>
    %45 = "stablehlo.reduce"(%arg3, %12) ({
    ^bb0(%b28: tensor<f32>, %b29: tensor<f32>):
      %44 = "stablehlo.minimum"(%b28, %b29) : (tensor<f32>, tensor<f32>) -> tensor<f32>
      "stablehlo.return"(%44) : (tensor<f32>) -> ()
    }) {dimensions = array<i64: 0>} : (tensor<0x2xf32>, tensor<f32>) -> tensor<2xf32>
    %46 = "stablehlo.compare"(%arg3, %arg3) {comparison_direction = #stablehlo<comparison_direction NE>} : (tensor<0x2xf32>, tensor<0x2xf32>) -> tensor<0x2xi1>
    %48 = "stablehlo.reduce"(%46, %7) ({
    ^bb0(%b30: tensor<i1>, %b31: tensor<i1>):
      %47 = "stablehlo.or"(%b30, %b31) : (tensor<i1>, tensor<i1>) -> tensor<i1>
      "stablehlo.return"(%47) : (tensor<i1>) -> ()
    }) {dimensions = array<i64: 0>} : (tensor<0x2xi1>, tensor<i1>) -> tensor<2xi1>
    %49 = "stablehlo.select"(%48, %10, %45) : (tensor<2xi1>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %50 = "stablehlo.constant"() {value = dense<-1> : tensor<i32>} : () -> tensor<i32>
    %52 = "stablehlo.reduce"(%arg1, %50) ({
    ^bb0(%b32: tensor<i32>, %b33: tensor<i32>):
      %51 = "stablehlo.and"(%b32, %b33) : (tensor<i32>, tensor<i32>) -> tensor<i32>
      "stablehlo.return"(%51) : (tensor<i32>) -> ()
    }) {dimensions = array<i64: 1>} : (tensor<2x3xi32>, tensor<i32>) -> tensor<2xi32>
    "func.return"(%2, %11, %18, %21, %24, %27, %30, %33, %35, %41, %43, %49, %52) : (tensor<3xf32>, tensor<2xf32>, tensor<2xf32>, tensor<i32>, tensor<2xi32>, tensor<3xi32>, tensor<i32>, tensor<2xi1>, tensor<2xi1>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xi32>) -> ()
  }
}
